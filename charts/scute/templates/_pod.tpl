{{- define "scute.image" -}}
"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
{{- end -}}

{{- define "scute.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* How a program reaches an external log, with the Secrets "credentials" and "tls", each "" for none. Nothing for an embedded log. */}}
{{- define "scute.natsArgs" -}}
{{- if and .nats.url .credentials }}
- --nats-creds=/etc/scute/nats-credentials/{{ .nats.credentials.key }}
{{- end }}
{{- if and .nats.url .tls }}
{{- with .nats.tls.caKey }}
- --nats-ca=/etc/scute/nats-tls/{{ . }}
{{- end }}
{{- with .nats.tls.certKey }}
- --nats-cert=/etc/scute/nats-tls/{{ . }}
{{- end }}
{{- with .nats.tls.keyKey }}
- --nats-key=/etc/scute/nats-tls/{{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "scute.natsMounts" -}}
{{- if and .nats.url .credentials }}
- name: nats-credentials
  mountPath: /etc/scute/nats-credentials
  readOnly: true
{{- end }}
{{- if and .nats.url .tls }}
- name: nats-tls
  mountPath: /etc/scute/nats-tls
  readOnly: true
{{- end }}
{{- end -}}

{{- define "scute.natsVolumes" -}}
{{- if and .nats.url .credentials }}
- name: nats-credentials
  secret:
    secretName: {{ .credentials }}
    defaultMode: 0440
{{- end }}
{{- if and .nats.url .tls }}
- name: nats-tls
  secret:
    secretName: {{ .tls }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* The pod of both modes: with the embedded log on a volume (a StatefulSet), or with an external NATS (a Deployment). */}}
{{- define "scute.pod" -}}
{{- $nats := dict "nats" .Values.nats "credentials" .Values.nats.credentials.secretName "tls" .Values.nats.tls.secretName -}}
metadata:
  labels:
    {{- include "scute.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    scute.dev/component: daemon # scutectl finds the pods by it
  annotations:
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    kubectl.kubernetes.io/default-container: scuted
spec:
  serviceAccountName: {{ include "scute.serviceAccountName" . }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  # Time to finish the write under way and to hand the lease back. Being killed later loses nothing either.
  terminationGracePeriodSeconds: 30
  containers:
    - name: scuted
      image: {{ include "scute.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --health-address=:8081
        - --metrics-address={{ if not .Values.metrics.enabled }}127.0.0.1{{ end }}:8080
        - --log-level={{ .Values.logging.level }}
        - --log-format={{ .Values.logging.format }}
        - --run-concurrency={{ .Values.workflows.concurrency }}
        - --run-parallel={{ .Values.workflows.parallel }}
        - --namespace-events-per-hour={{ int64 .Values.log.quota.eventsPerHour }}
        - --namespace-bytes-per-hour={{ int64 .Values.log.quota.bytesPerHour }}
        - --move-concurrency={{ .Values.moves.concurrency }}
        - --cluster-backup-concurrency={{ .Values.clusterBackups.concurrency }}
        - --cluster-backup-max-bytes={{ int64 .Values.clusterBackups.maxBytes }}
        {{- if .Values.clusterBackups.existingClaim }}
        - --cluster-backup-volume=/var/lib/scute-backups
        {{- end }}
        {{- if .Values.remediation.enabled }}
        - --remediation-concurrency={{ .Values.remediation.concurrency }}
        {{- else }}
        - --remediation=false
        {{- end }}
        {{- with .Values.workflows.defaultFailurePolicy }}
        - --default-failure-policy={{ . }}
        {{- end }}
        {{- range .Values.allowAddresses }}
        - --allow-addresses={{ . }}
        {{- end }}
        {{- range .Values.shareCredentialsWith }}
        - --share-credentials-with={{ . }}
        {{- end }}
        {{- if .Values.workflows.execEnabled }}
        - --enable-exec
        {{- end }}
        {{- with int64 .Values.log.maxBytes }}
        - --log-max-bytes={{ . }}
        {{- end }}
        {{- if .Values.audit.enabled }}
        - --audit-key={{ .Release.Namespace }}/{{ include "scute.fullname" . }}-audit-key
        - --audit-configmap={{ .Release.Namespace }}/{{ include "scute.fullname" . }}-audit
        - --audit-interval={{ .Values.audit.interval }}
        {{- if .Values.audit.folder.existingClaim }}
        - --audit-folder=/var/lib/scute-audit
        {{- end }}
        {{- with .Values.audit.witness.url }}
        - --audit-witness={{ . }}
        {{- end }}
        {{- if .Values.nats.url }}
        - --audit-dir=/var/lib/scute-seal
        {{- end }}
        {{- end }}
        {{- with .Values.webhook.url }}
        - --webhook-url={{ . }}
        - --webhook-position={{ $.Release.Namespace }}/{{ include "scute.fullname" $ }}-webhook
        {{- if $.Values.webhook.secretName }}
        - --webhook-secret=/etc/scute/webhook
        {{- end }}
        {{- end }}
        {{- if .Values.tracing.endpoint }}
        - --tracing-position={{ .Release.Namespace }}/{{ include "scute.fullname" . }}-tracing
        {{- end }}
        {{- if .Values.nats.url }}
        - --nats-url={{ .Values.nats.url }}
        - --log-replicas={{ .Values.nats.streamReplicas }}
        {{- with include "scute.natsArgs" $nats | trim }}{{ . | nindent 8 }}{{- end }}
        {{- else }}
        - --log-dir=/var/lib/scute
        {{- with .Values.log.listen }}
        - --log-listen={{ . }}
        - --log-access={{ $.Release.Namespace }}/{{ include "scute.fullname" $ }}-log
        {{- end }}
        {{- end }}
      {{- if or .Values.tracing.endpoint .Values.extraEnv }}
      env:
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.tracing }}
      {{- if .endpoint }}
        - name: OTEL_EXPORTER_OTLP_ENDPOINT
          value: {{ .endpoint | quote }}
        {{- if .secretName }}
        {{- with .headersKey }}
        - name: OTEL_EXPORTER_OTLP_HEADERS
          valueFrom:
            secretKeyRef:
              name: {{ $.Values.tracing.secretName }}
              key: {{ . }}
        {{- end }}
        {{- with .caKey }}
        - name: OTEL_EXPORTER_OTLP_CERTIFICATE
          value: /etc/scute/tracing/{{ . }}
        {{- end }}
        {{- with .certKey }}
        - name: OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE
          value: /etc/scute/tracing/{{ . }}
        {{- end }}
        {{- with .keyKey }}
        - name: OTEL_EXPORTER_OTLP_CLIENT_KEY
          value: /etc/scute/tracing/{{ . }}
        {{- end }}
        {{- end }}
        {{- range $name, $value := .env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      {{- end }}
      {{- end }}
      ports:
        - name: health
          containerPort: 8081
        {{- if .Values.metrics.enabled }}
        - name: metrics
          containerPort: 8080
        {{- end }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: health
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: health
        periodSeconds: 5
        timeoutSeconds: 5
      # A log whose index is gone is read through once at the start.
      startupProbe:
        httpGet:
          path: /healthz
          port: health
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "scute.containerSecurity" . | nindent 8 }}
      volumeMounts:
        # What tasks of a run write while they run, commands and clusterctl's library, and backups of clusters while they are made.
        - name: tmp
          mountPath: /tmp
        {{- if not .Values.nats.url }}
        - name: log
          mountPath: /var/lib/scute
        {{- else if .Values.audit.enabled }}
        # The hashes of the log, made again from it when they are gone.
        - name: seal
          mountPath: /var/lib/scute-seal
        {{- end }}
        {{- if and .Values.audit.enabled .Values.audit.folder.existingClaim }}
        - name: audit
          mountPath: /var/lib/scute-audit
        {{- end }}
        {{- if .Values.clusterBackups.existingClaim }}
        - name: cluster-backups
          mountPath: /var/lib/scute-backups
        {{- end }}
        {{- if and .Values.webhook.url .Values.webhook.secretName }}
        - name: webhook
          mountPath: /etc/scute/webhook
          readOnly: true
        {{- end }}
        {{- if and .Values.tracing.endpoint .Values.tracing.secretName }}
        - name: tracing
          mountPath: /etc/scute/tracing
          readOnly: true
        {{- end }}
        {{- with include "scute.natsMounts" $nats | trim }}{{ . | nindent 8 }}{{- end }}
  volumes:
    # A pod that takes more is evicted: it has room for the backups that may be made at once, and for what tasks write.
    - name: tmp
      emptyDir:
        sizeLimit: {{ add (mul 2 (int64 .Values.clusterBackups.concurrency) (int64 .Values.clusterBackups.maxBytes)) 268435456 | quote }}
    {{- if and .Values.nats.url .Values.audit.enabled }}
    - name: seal
      emptyDir:
        sizeLimit: 2Gi
    {{- end }}
    {{- if and .Values.audit.enabled .Values.audit.folder.existingClaim }}
    - name: audit
      persistentVolumeClaim:
        claimName: {{ .Values.audit.folder.existingClaim }}
    {{- end }}
    {{- with .Values.clusterBackups.existingClaim }}
    - name: cluster-backups
      persistentVolumeClaim:
        claimName: {{ . }}
    {{- end }}
    {{- if and .Values.webhook.url .Values.webhook.secretName }}
    - name: webhook
      secret:
        secretName: {{ .Values.webhook.secretName }}
        defaultMode: 0440
    {{- end }}
    {{- if and .Values.tracing.endpoint .Values.tracing.secretName }}
    - name: tracing
      secret:
        secretName: {{ .Values.tracing.secretName }}
        defaultMode: 0440
    {{- end }}
    {{- with include "scute.natsVolumes" $nats | trim }}{{ . | nindent 4 }}{{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
