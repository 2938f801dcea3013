package task_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

type embedded struct {
	Name string `json:"name"`
}

type with struct {
	embedded

	Command []string             `json:"command"`
	Env     map[string]string    `json:"env"`
	Nested  *struct{ In string } `json:"nested"`
	Vars    []corev1.EnvVar      `json:"vars"`
	Port    intstr.IntOrString   `json:"port"`
	Count   int                  `json:"count"`
	On      bool                 `json:"on"`
	Any     json.RawMessage      `json:"any"`
}

// TestOutputsBecomeText checks that a number or a boolean of an output becomes text in a text field, and is unchanged
// in other fields.
func TestOutputsBecomeText(t *testing.T) {
	given := `{"name":1,"command":["sleep",3,true],"env":{"PORT":6443,"BIG":12345678901234567890,"ON":false,"<":"&"},"nested":{"In":1.50},
		"vars":[{"name":"A","value":7}],"port":80,"count":2,"on":true,"any":{"a":1}}`
	strict := func(raw json.RawMessage) []workflow.Problem { return task.DecodeStrict(raw, &with{}) }
	w, err := task.ReadInputs[with](&task.Call{With: json.RawMessage(given)}, strict)
	if err != nil {
		t.Fatal(err)
	}
	have := fmt.Sprintf("%s %v %v %s %v %v %d %t %s", w.Name, w.Command, w.Env, w.Nested.In, w.Vars, w.Port.IntValue(), w.Count, w.On, w.Any)
	const want = `1 [sleep 3 true] map[<:& BIG:12345678901234567890 ON:false PORT:6443] 1.50 [{A 7 nil}] 80 2 true {"a":1}`
	if have != want {
		t.Errorf("got  %s\nwant %s", have, want)
	}
	for _, wrong := range []string{`{"command":[["a"]]}`, `{"count":"x"}`, `{"nme":"a"}`, `{"command":[null,{}]}`} {
		if _, err := task.ReadInputs[with](&task.Call{With: json.RawMessage(wrong)}, strict); !task.IsFinal(err) {
			t.Errorf("ReadInputs(%s) = %v, want a final error", wrong, err)
		}
	}
	if problems := strict(json.RawMessage(`{"command":[1]}`)); len(problems) != 1 {
		t.Errorf("problems with a number in a manifest = %v, want 1", problems)
	}
}
