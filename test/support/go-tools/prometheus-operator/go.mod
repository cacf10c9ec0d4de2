module weir/tools/prometheus-operator

go 1.22

require github.com/prometheus-operator/prometheus-operator v0.77.2
