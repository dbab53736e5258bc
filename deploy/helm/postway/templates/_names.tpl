{{- define "postway.labels" -}}
app.kubernetes.io/name: postway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
