// Package orphans ends what the log still drives for a resource that is gone. What such a thing is, and how it ends, belongs to the
// controller of its kind.
package orphans
