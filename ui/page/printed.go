package page

import (
	"fmt"

	runs "scute.dev/cmd/ctl/run"
)

// Bounds of what a page has of the output of commands.
const (
	printedAttempts = 4
	printedBytes    = 16 << 10
)

// Printed is what the commands and Jobs of a task printed last.
type Printed struct {
	List        []runs.Printout
	Note, Wrong string
}

// printed reads it where it is kept, beside the log in a folder; nil where there is nothing of it. A file does not say what it had at an earlier
// moment.
func (v *view) printed(r *runs.Run, task string) *Printed {
	dir := v.site.kit.Flags.Dir
	if dir == "" || v.past {
		return nil
	}
	list, earlier, err := runs.Printouts(dir, r.ID, task, printedAttempts, printedBytes)
	switch p := (&Printed{List: list}); {
	case err != nil:
		p.Wrong = err.Error()
		return p
	case len(list) == 0:
		return nil
	default:
		p.Note = v.command(r.Namespace, "logs", "run", r.Name, "--task", task) + " shows all of it"
		if earlier > 0 {
			p.Note += fmt.Sprintf(", with %d earlier attempts", earlier)
		}
		return p
	}
}
