{{- define "scute.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{/* A name of at most "most" characters. One that is cut ends with a hash of the whole, so that no two become one. */}}
{{- define "scute.short" -}}
{{- if gt (len .name) (int .most) -}}
{{- printf "%s-%s" (.name | trunc (sub .most 9 | int) | trimSuffix "-") (sha256sum .name | trunc 8) -}}
{{- else -}}
{{- .name -}}
{{- end -}}
{{- end -}}

{{/* At most 52 characters: a StatefulSet appends a hash of eleven to its name, in a label of its pods. */}}
{{- define "scute.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "scute.name" .) .Release.Name -}}
{{- include "scute.short" (dict "name" .Release.Name "most" 52) -}}
{{- else -}}
{{- include "scute.short" (dict "name" (printf "%s-%s" .Release.Name (include "scute.name" .)) "most" 52) -}}
{{- end -}}
{{- end -}}

{{/* At most 52 characters: a CronJob appends eleven to its name for each Job. */}}
{{- define "scute.backupName" -}}
{{- include "scute.short" (dict "name" (include "scute.fullname" .) "most" 45) -}}-backup
{{- end -}}

{{- define "scute.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "scute.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "scute.selector" -}}
app.kubernetes.io/name: {{ include "scute.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "scute.labels" -}}
{{ include "scute.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The rules that list the providers that clusterctl, or Cluster API's operator, has installed. */}}
{{- define "scute.inventory" -}}
- apiGroups: [clusterctl.cluster.x-k8s.io]
  resources: [providers]
  verbs: [list]
- apiGroups: [operator.cluster.x-k8s.io]
  resources:
    - addonproviders
    - bootstrapproviders
    - controlplaneproviders
    - coreproviders
    - infrastructureproviders
    - ipamproviders
    - runtimeextensionproviders
  verbs: [list]
{{- end }}
