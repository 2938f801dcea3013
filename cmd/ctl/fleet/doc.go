// Package fleet joins what a management cluster says of its clusters' machines: Cluster API's objects, and scute's marks and
// remediations where there are any. It works without a RepairPolicy, and without any of scute's kinds.
//
// What never may live here: printing, any write, and a decision about a machine.
package fleet
