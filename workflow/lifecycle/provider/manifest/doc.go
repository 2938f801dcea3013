// Package manifest implements a provider with manifests that contain variables. Named workflows use it by default. A template is a file of a local
// run, a ConfigMap or Secret of the run's namespace, or inline in the parameters.
//
// The syntax of variables and defaults is that of clusterctl: ${NAME}, ${NAME:=default}. The following variables come from the specification of the
// cluster, all others from its variables:
//
//	NAMESPACE  CLUSTER_NAME  KUBERNETES_VERSION  CONTROL_PLANE_MACHINE_COUNT  WORKER_MACHINE_COUNT
//
// This package never decides when a template is applied: the workflows do.
package manifest
