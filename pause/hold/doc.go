// Package hold sets a pause on a root object, and restores its earlier state. Each write names the
// object's UID, so that another object with the same name is never changed.
//
// A root that scute paused has the holder's id in an annotation: scute.dev/move for a move, scute.dev/pause for a task
// of a run, scute.dev/pause.UID for a Pause. The mark and the pause are one write, and one that does not find its own mark has
// nothing to restore. A move holds a root alone, and of the tasks of runs one does. Pauses hold it together, and beside a task: what
// the first of them found is in annotation scute.dev/paused-before, the others take it over, and the last restores it.
//
// Writer writes the pauses of many roots at once, and wakes controllers. Pause is a whole acknowledged pause for its own sake:
// look, set, acknowledged, restore, asleep. Which objects belong to its Clusters is told by a Graph, which mover/transfer has.
//
// What never may live here: the rules of who must acknowledge (package pause).
package hold
