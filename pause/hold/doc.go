// Package hold sets a pause on a root object, and restores its earlier state. Each write names the
// object's UID, so that another object with the same name is never changed.
//
// A root that scute paused has the holder's id in an annotation: scute.dev/move for a move, scute.dev/pause for a task
// of a run, scute.dev/pause.UID for a Pause. The mark and the pause are one write, and one that does not find its own mark has
// nothing to restore. A move holds a root alone, and of the tasks of runs one does. Pauses hold it together, and beside a task: what
// the first of them found is in annotation scute.dev/paused-before, the others take it over, and the last restores it.
//
// Switch pauses one object by a field or an annotation: roots, and the objects of Flux and EKS Anywhere that tasks of runs pause. Writer
// writes the pauses of many roots at once, and wakes controllers; Watch looks at the objects below them. Pause is a whole acknowledged
// pause for its own sake: look, set, see, restore, asleep. A Graph, which mover/transfer has, finds which objects belong to its Clusters.
//
// What never may live here: the rules of who must acknowledge (package pause).
package hold
