// Package machine implements the commands of scutectl about machines: which are unhealthy, what scute decided about them, and what happens next. It
// joins the objects of Cluster API with scute's annotations and remediations.
//
// This package never decides whether a machine is healthy, and never writes.
package machine
