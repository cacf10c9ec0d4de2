{{/* Names are cut at 40 characters, so that the longest suffix fits into 63. */}}
{{- define "weir.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels that never change: of selectors and claims. Call with (list $ "ingress"). */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ (first .).Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ (first .).Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" (first .).Chart.Name (first .).Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "weir.metadata" -}}
name: {{ include "weir.fullname" (first .) }}-{{ last . }}
labels: {{- include "weir.labels" . | nindent 2 }}
{{- end }}

{{- define "weir.image" -}}
{{- $v := (first .).Values.image }}
image: {{ printf "%s/weir-%s:%s" $v.registry (last .) ($v.tag | default (first .).Chart.AppVersion) | quote }}
imagePullPolicy: {{ $v.pullPolicy }}
{{- end }}

{{/* What every container has. */}}
{{- define "weir.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* What every pod has. */}}
{{- define "weir.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The variables and secrets of one program, as JSON: { env, secrets }. Call with (dict "root" $ "reads" PROGRAM "own" LAYERS "set" FIXED).
`reads` is a key of files/variables.json, LAYERS a list of values with env and secrets, the last one wins; FIXED is what the chart itself sets.
*/}}
{{- define "weir.variables" -}}
{{- $known := get (.root.Files.Get "files/variables.json" | required "the chart has no files/variables.json: run `npm run chart` in the checkout" | fromJson) .reads }}
{{- $env := dict "WEIR_KAFKA_BROKERS" .root.Values.kafka.brokers }}
{{- $secrets := dict }}
{{- range prepend .own .root.Values }}
{{- range $name, $value := .env }}{{ $_ := set $env $name $value }}{{ $_ := unset $secrets $name }}{{ end }}
{{- range $name, $value := .secrets }}{{ $_ := set $secrets $name $value }}{{ $_ := unset $env $name }}{{ end }}
{{- end }}
{{- $free := dict }}
{{- if eq .reads "alerting" }}{{ $free = .root.Values.alerting.secrets }}{{ end }}
{{- range concat (keys $env) (keys $secrets) }}{{ if not (or (has . $known.reads) (hasKey $free .)) }}{{ $_ := unset $env . }}{{ $_ := unset $secrets . }}{{ end }}{{ end }}
{{- $env = merge (dict) .set $env }}
{{- range $known.required }}
{{- if and (not (hasKey $env .)) (not (hasKey $secrets .)) }}{{ fail (printf "%s of %s is required: set it in `secrets` or `env`" . $.reads) }}{{ end }}
{{- end }}
{{- dict "env" $env "secrets" $secrets | toJson }}
{{- end }}

{{/* The `env` of a container, from what weir.variables returned. */}}
{{- define "weir.env" -}}
{{- range $name, $value := .env }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- range $name, $value := .secrets }}
- { name: {{ $name }}_FILE, value: /etc/weir/secrets/{{ $name }} }
{{- end }}
{{- end }}

{{/* Mounts of the secrets, the files and /tmp; (list $ VARIABLES). */}}
{{- define "weir.mounts" -}}
- { name: tmp, mountPath: /tmp }
{{- if (last .).secrets }}
- { name: secrets, mountPath: /etc/weir/secrets, readOnly: true }
{{- end }}
{{- range $folder, $_ := (first .).Values.files }}
- { name: file-{{ $folder }}, mountPath: /etc/weir/files/{{ $folder }}, readOnly: true }
{{- end }}
{{- end }}

{{/* Whole folders, which Kubernetes keeps up to date: a new secret needs no restart. */}}
{{- define "weir.volumes" -}}
- { name: tmp, emptyDir: {} }
{{- with (last .).secrets }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $name, $value := . }}
      - secret: { name: {{ $value.name }}, items: [{ key: {{ $value.key }}, path: {{ $name }} }] }
      {{- end }}
{{- end }}
{{- range $folder, $secret := (first .).Values.files }}
- { name: file-{{ $folder }}, secret: { secretName: {{ $secret }}, defaultMode: 0440 } }
{{- end }}
{{- end }}

{{- define "weir.liveness" -}}
startupProbe: { httpGet: { path: /livez, port: ops }, periodSeconds: 2, failureThreshold: 60 }
livenessProbe: { httpGet: { path: /livez, port: ops }, periodSeconds: 10, timeoutSeconds: 3 }
{{- end }}

{{- define "weir.probes" -}}
{{ include "weir.liveness" . }}
readinessProbe: { httpGet: { path: /readyz, port: ops }, periodSeconds: 5, timeoutSeconds: 3 }
{{- end }}

{{- define "weir.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "weir.selector" . | nindent 8 }}
{{- end }}

{{/* A new policy file is read at the next start. */}}
{{- define "weir.policyChecksum" -}}
{{- with .Values.policy.text }}
annotations: { checksum/policy: {{ sha256sum . }} }
{{- end }}
{{- end }}
