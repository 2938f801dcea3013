package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// celCost bounds one evaluation, as the API server bounds those of its validation rules.
const celCost = 10_000_000

// celProgram is a compiled expression over an object.
type celProgram struct {
	text    string
	program cel.Program
}

// compileCEL knows CEL's standard functions. Those of its extension for strings are left out: replace and join make of a
// short text one that is larger than the memory, at a cost that no limit counts.
func compileCEL(text string) (*celProgram, error) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives a %s and not true or false", t)
	}
	program, err := env.Program(ast, cel.CostLimit(celCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	return &celProgram{text: text, program: program}, nil
}

func (p *celProgram) test(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return ref.String() + " is not there", nil
	}
	value, details, err := p.program.ContextEval(ctx, map[string]any{"object": u.Object})
	switch {
	case err != nil && details != nil && details.ActualCost() != nil && *details.ActualCost() >= celCost:
		return "", task.Final(errors.New("with.for.cel: the expression costs too much: make it simpler"))
	case err != nil && ref.IsSecret(): // the error may quote a value
		return fmt.Sprintf("%s: %s cannot be evaluated yet", ref, p.text), nil
	case err != nil: // most of all a field that is not there yet
		return fmt.Sprintf("%s: %s: %s", ref, p.text, redact.Message(err.Error())), nil
	case value.Value() == true:
		return "", nil
	default:
		return fmt.Sprintf("%s: %s is not true", ref, p.text), nil
	}
}

func (w output) sorted() output {
	slices.SortFunc(w.Objects, access.CompareRefs)
	if len(w.Objects) > access.NamedLimit {
		w.Objects = w.Objects[:access.NamedLimit]
	}
	return w
}
