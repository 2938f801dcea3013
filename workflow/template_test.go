package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"scute.dev/workflow"
)

func TestFill(t *testing.T) {
	outputs := map[string]json.RawMessage{
		"a": json.RawMessage(`{"id": 9007199254740993, "big": 12345678901234567890123, "text": "a&b<c>", "list": [{"x": "y"}], "none": null, "empty": ""}`),
	}
	for _, c := range []struct{ with, want string }{
		{`{"v": "${tasks.a.output.id}"}`, `{"v":9007199254740993}`},
		{`{"v": "is ${tasks.a.output.id} ${tasks.a.output.big}"}`, `{"v":"is 9007199254740993 12345678901234567890123"}`},
		{`{"v": 9007199254740993, "w": "${tasks.a.output.text}"}`, `{"v":9007199254740993,"w":"a&b<c>"}`},
		{`{"v": "all: ${tasks.a.output.list}"}`, `{"v":"all: [{\"x\":\"y\"}]"}`},
		{`{"v": "${tasks.a.output.list.0.x}", "w": "$${tasks.a.output}"}`, `{"v":"y","w":"${tasks.a.output}"}`},
		{`{"v": "${tasks.a.output.id:-7}"}`, `{"v":9007199254740993}`},
		{`{"v": "${tasks.a.output.other:-a default}", "w": "-${tasks.a.output.none:-}-"}`, `{"v":"a default","w":"--"}`},
		{`{"v": "${tasks.a.output.empty:-full}"}`, `{"v":""}`},
		{`["${tasks.b.output:-none}", "${tasks.b.output.x.y:-none}"]`, `["none","none"]`},
		{`{"v": "no reference"}`, `{"v": "no reference"}`},
		{`{"v": "$${tasks.NAME} ${tasks.a.output.id} $${tasks.", "w": "$${HOME} ${HOME}"}`, `{"v":"${tasks.NAME} 9007199254740993 ${tasks.","w":"$${HOME} ${HOME}"}`},
	} {
		got, err := workflow.Fill(json.RawMessage(c.with), func(task string) json.RawMessage { return outputs[task] })
		if err != nil || string(got) != c.want {
			t.Errorf("Fill(%s) = %s, %v, want %s", c.with, got, err, c.want)
		}
	}
	for with, want := range map[string]string{
		`{"v": "${tasks.b.output}"}`:         `task "b" has recorded no output`,
		`{"v": "${tasks.a.output.other}"}`:   `the output of task "a" has no other`,
		`{"v": "${tasks.a.output.list.1}"}`:  `the output of task "a" has no list.1`,
		`{"v": "x ${tasks.a.output.id.id}"}`: `the output of task "a" has no id.id`,
	} {
		_, err := workflow.Fill(json.RawMessage(with), func(task string) json.RawMessage { return outputs[task] })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Fill(%s) = %v, want %s", with, err, want)
		}
		if missing := strings.Contains(want, "recorded"); errors.Is(err, workflow.ErrNoOutput) != missing {
			t.Errorf("Fill(%s) = %v, ErrNoOutput %t, want %t", with, err, !missing, missing)
		}
	}
}

// TestFillIsBounded checks that a small manifest that repeats a large output is rejected before memory is allocated for
// it.
func TestFillIsBounded(t *testing.T) {
	output, err := json.Marshal(map[string]string{"x": strings.Repeat("<x>", 16<<10/3)})
	if err != nil {
		t.Fatal(err)
	}
	for name, piece := range map[string]string{
		"text":  strings.Repeat("${tasks.a.output.x} ", 25_000),
		"value": strings.TrimSuffix(strings.Repeat(`${tasks.a.output}","`, 25_000), `","`),
	} {
		with := json.RawMessage(fmt.Sprintf(`{"message": [%q]}`, piece))
		if name == "value" {
			with = json.RawMessage(fmt.Sprintf(`{"message": ["%s"]}`, piece))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := workflow.Fill(with, func(string) json.RawMessage { return output })
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Errorf("%s: Fill = %v, want an error about the limit", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d MiB were allocated for %d KiB of inputs", name, took>>20, len(with)>>10)
		}
	}
	fits := json.RawMessage(`{"message": "` + strings.Repeat("${tasks.a.output.x}", 63) + `"}`)
	got, err := workflow.Fill(fits, func(string) json.RawMessage { return output })
	if err != nil || len(got) > 1<<20 || !json.Valid(got) {
		t.Errorf("Fill of 63 times 16 KiB = %d bytes, error %v", len(got), err)
	}
}
