package runner

import "scute.dev/internal/supervise"

// drivenLimit bounds the runs that are driven at once, most of which wait. Each of them keeps its graph in memory.
const drivenLimit = 256

// Supervisor returns a supervisor that drives every unfinished run of a view. The caller notifies it of changes in the view. It does not drive a run
// that waits for an operator, or that is stranded in this process. Slots bounds the runs that work at once.
func (r *Runner) Supervisor(v *Runs) *supervise.Supervisor {
	v.Incarnation = r.Incarnation
	return &supervise.Supervisor{Noun: "run", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Limit: drivenLimit, Logger: r.Logger}
}
