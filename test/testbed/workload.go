package testbed

// Workload is a workload cluster, wherever it is managed.
type Workload struct {
	bed             *Bed
	Namespace, Name string
}

// Workload returns a handle on the workload cluster of that name. It need not exist yet.
func (b *Bed) Workload(namespace, name string) *Workload {
	return &Workload{bed: b, Namespace: namespace, Name: name}
}
