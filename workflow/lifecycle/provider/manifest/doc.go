// Package manifest is the default provider of named workflows, made of manifests with variables.
// Templates are files for a local run, ConfigMaps or Secrets of the run's namespace, or part of the
// parameters.
//
// Variables are written and given defaults as in templates of clusterctl: ${NAME}, ${NAME:=default}. These come from the
// specification of the cluster, all others from its variables:
//
//	NAMESPACE  CLUSTER_NAME  KUBERNETES_VERSION  CONTROL_PLANE_MACHINE_COUNT  WORKER_MACHINE_COUNT
//
// What never may live here: what a template is for, which is the workflows' business.
package manifest
