// Providers of Cluster API whose CustomResourceDefinitions are read. None of them is compiled.
module scute.dev/test/catalog/modules

go 1.26.0

require (
	sigs.k8s.io/cluster-api-operator v0.29.0
	sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
	sigs.k8s.io/cluster-api-provider-gcp v1.13.1
)
