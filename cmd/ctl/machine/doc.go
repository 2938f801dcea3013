// Package machine implements the commands of scutectl about machines. It joins the objects of
// Cluster API with scute's annotations and remediations.
//
// What never may live here: what a machine's health is, or any write.
package machine
