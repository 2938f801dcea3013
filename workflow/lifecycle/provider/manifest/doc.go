// Package manifest is the default provider of named workflows, made of manifests with variables.
// Templates are files for a local run, ConfigMaps or Secrets of the run's namespace, or part of the
// parameters.
//
// The syntax of variables and defaults is that of clusterctl: ${NAME}, ${NAME:=default}. The following variables come from the specification of the
// cluster, all others from its variables:
//
//	NAMESPACE  CLUSTER_NAME  KUBERNETES_VERSION  CONTROL_PLANE_MACHINE_COUNT  WORKER_MACHINE_COUNT
//
// This package never decides when a template is applied: the workflows do.
package manifest
