package wait

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const (
	// celCost limits the cost of one evaluation. Doubling a text until it has 10 MiB reaches this
	// limit.
	celCost = 1_000_000
	// celTime limits an evaluation, which can only be interrupted between the elements of a macro.
	celTime = 5 * time.Second
	// celValues limits the number of values in compared lists and maps. CEL cannot interrupt a
	// comparison, and counts the same cost for short and long lists.
	celValues = 100_000
	// celPattern limits the bytes of a regular expression, and celSteps the cost of a match: bytes
	// of text times instructions. CEL cannot interrupt a match, and counts only the bytes of an
	// expression such as (a?){1000}.
	celPattern = 1 << 10
	celSteps   = 20_000_000
)

// errTooCostly means that an expression exceeds a limit.
var errTooCostly = errors.New("the expression is too expensive: simplify it")

type celProgram struct {
	text    string
	program cel.Program
}

// compileCEL compiles an expression. It does not enable CEL's string extension, because replace and
// join can turn a short text into one larger than the memory, and no limit counts that cost.
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
		return nil, fmt.Errorf("it returns a %s, not true or false", t)
	}
	program, err := env.Program(ast, cel.CostLimit(celCost), cel.InterruptCheckFrequency(10), cel.CustomDecoratorV2(limitCost))
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	return &celProgram{text: text, program: program}, nil
}

// limitCost limits comparisons and matches. Without it, a short expression could create a list of
// 2^40 values that takes no memory, because its parts are shared.
func limitCost(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	var compare func(a, b ref.Val) ref.Val
	switch call.Function() {
	case operators.Equals:
		compare = types.Equal
	case operators.NotEquals:
		compare = func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }
	case operators.In:
		compare = func(a, b ref.Val) ref.Val {
			if in, ok := b.(traits.Container); ok {
				return in.Contains(a)
			}
			return types.ValOrErr(b, "no such overload")
		}
	case overloads.Matches:
		compare = matchRegexp
	default:
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		left := celValues
		for _, arg := range args {
			if left = countValues(arg, left); left < 0 {
				return types.WrapErr(errTooCostly)
			}
		}
		return compare(args[0], args[1])
	}), nil
}

func matchRegexp(text, expression ref.Val) ref.Val {
	in, ok := text.(types.String)
	pattern, is := expression.(types.String)
	if !ok || !is {
		return types.ValOrErr(text, "no such overload")
	}
	if len(pattern) > celPattern {
		return types.WrapErr(errTooCostly)
	}
	parsed, err := syntax.Parse(string(pattern), syntax.Perl)
	if err != nil {
		return types.WrapErr(err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return types.WrapErr(err)
	}
	if len(in)*len(program.Inst) > celSteps {
		return types.WrapErr(errTooCostly)
	}
	return in.Match(pattern)
}

// countValues returns left minus the number of values in v, including nested ones. It stops
// counting below zero.
func countValues(v ref.Val, left int) int {
	left--
	all, ok := v.(traits.Iterable)
	if !ok {
		return left
	}
	in, _ := v.(traits.Mapper)
	for each := all.Iterator(); left >= 0 && each.HasNext() == types.True; {
		one := each.Next()
		if in != nil {
			one = in.Get(one)
		}
		left = countValues(one, left)
	}
	return left
}

func (p *celProgram) test(ctx context.Context, ref access.ObjectRef, u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return ref.String() + " does not exist", nil
	}
	evaluating, cancel := context.WithTimeout(ctx, celTime)
	defer cancel()
	value, details, err := p.program.ContextEval(evaluating, map[string]any{"object": u.Object})
	switch {
	case errors.Is(err, errTooCostly), err != nil && details != nil && details.ActualCost() != nil && *details.ActualCost() >= celCost:
		return "", task.Final(fmt.Errorf("with.for.cel: %w", errTooCostly))
	case err != nil && ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && ref.IsSecret(): // the error may quote a value
		return fmt.Sprintf("%s: %s cannot be evaluated yet", ref, p.text), nil
	case err != nil: // most often, a field does not exist yet
		return fmt.Sprintf("%s: %s: %s", ref, p.text, redact.Message(err.Error())), nil
	case value.Value() == true:
		return "", nil
	default:
		return fmt.Sprintf("%s: %s is not true", ref, p.text), nil
	}
}
