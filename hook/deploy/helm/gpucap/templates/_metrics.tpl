{{/*
What each container under limits holds and uses: http://POD:9744/metrics. A client that reaches the port sees the names
of all pods on the node: see the NetworkPolicy.
*/}}
{{- define "gpucap.metrics.container" -}}
- name: metrics
  {{- include "gpucap.image" . | nindent 2 }}
  command:
    - /opt/gpucap/current/bin/gpucap
    - metrics
    - --listen=0.0.0.0:9744
  ports:
    - name: metrics
      containerPort: 9744
  readinessProbe:
    tcpSocket:
      port: metrics
  securityContext:
    # The ledgers of containers belong to their users, in their file systems: /proc/PID/root leads there. They are
    # only read.
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [SYS_PTRACE, DAC_READ_SEARCH]
    seccompProfile:
      type: RuntimeDefault
    appArmorProfile:
      type: Unconfined
    seLinuxOptions:
      type: spc_t
  resources:
    requests: {cpu: 5m, memory: 8Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - name: prefix
      mountPath: /opt/gpucap
      readOnly: true
    - name: etc
      mountPath: /etc/gpucap
      readOnly: true
    - name: records
      mountPath: {{ include "gpucap.records" . }}
      readOnly: true
{{- end }}

{{- define "gpucap.metrics.volumes" -}}
- name: records
  hostPath:
    path: {{ include "gpucap.records" . }}
    type: DirectoryOrCreate
{{- end }}
