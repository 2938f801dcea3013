// Package orphans ends the objects in the log whose resource was deleted. The controller of each kind provides the objects and ends them.
package orphans
