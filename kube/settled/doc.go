// Package settled determines whether a Cluster, a control plane, a MachineDeployment, a MachineSet or a MachinePool of Cluster API is rolled out.
// Look reads the object and the objects that belong to it. State.Missing is pure and returns how they differ from their specs. A status counts only
// if its controller has observed the latest spec. If a status is derived from other objects and lags behind them, as the status of a
// MachineDeployment does, the other objects are read, too.
//
// This package never waits, and contains no rules for other kinds.
package settled
