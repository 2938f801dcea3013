// Package settled reports whether an object of Cluster API is rolled out. It knows Clusters,
// control planes, MachineDeployments, MachineSets and MachinePools. Read reads the object and what
// belongs to it; State.Problems is pure and says what is not as the specs want it. A status counts
// only if its controller has seen the latest spec, and where a status is derived from other objects
// that lag behind, as a MachineDeployment's is from its MachineSets, those are read themselves.
//
// This package never waits, and contains no rules for other kinds.
package settled
