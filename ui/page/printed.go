package page

import (
	"fmt"

	runs "scute.dev/cmd/ctl/run"
)

// Limits of the output on a page.
const (
	printedAttempts = 4
	printedBytes    = 16 << 10
)

// printed is the last output that the commands and Jobs of a task have printed.
type printed struct {
	List        []runs.Printout
	Note, Wrong string
}

// printed reads the last output of a task from files beside a log in a folder. It returns nil if
// there is no output. It also returns nil on pages of the past, because the files do not keep
// earlier output.
func (v *view) printed(r *runs.Run, task string) *printed {
	dir := v.site.kit.Flags.Dir
	if dir == "" || v.Past {
		return nil
	}
	list, earlier, err := runs.Printouts(dir, r.ID, task, printedAttempts, printedBytes)
	switch p := (&printed{List: list}); {
	case err != nil:
		p.Wrong = err.Error()
		return p
	case len(list) == 0:
		return nil
	default:
		p.Note = v.site.kit.Hint(r.Namespace, "logs", "run", r.Name, "--task", task) + " shows all of it"
		if earlier > 0 {
			p.Note += fmt.Sprintf(", with %d earlier attempts", earlier)
		}
		return p
	}
}
