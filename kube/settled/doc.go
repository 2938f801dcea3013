// Package settled reports whether an object of Cluster API is rolled out. It knows Clusters,
// control planes, MachineDeployments, MachineSets and MachinePools. Read reads the object and the
// objects that belong to it. State.Problems is pure, and returns the differences from the specs. A
// status counts only if its controller has observed the latest spec. If a status is derived from
// other objects and may lag behind them, as the status of a MachineDeployment is derived from its
// MachineSets, these objects are read too.
//
// This package never waits, and contains no rules for other kinds.
package settled
