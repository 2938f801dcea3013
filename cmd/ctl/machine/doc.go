// Package machine is all that scutectl has about machines: it joins what a management cluster says of its clusters' machines,
// Cluster API's objects, and scute's marks and remediations where there are any; it shows them at a glance; and it holds the
// commands about them.
//
// What never may live here: what a machine's health is, or any write.
package machine
