// Package settled reports whether an object of Cluster API is rolled out: a Cluster, a control
// plane, a MachineDeployment, a MachineSet or a MachinePool. Read reads the object and the objects
// that belong to it; State.Problems is pure and returns the differences from the specs. A status
// counts only if its controller has observed the latest spec. If it may lag behind other objects
// that it is derived from, as a MachineDeployment's lags behind its MachineSets, these are read
// too.
//
// This package never waits, and contains no rules for other kinds.
package settled
