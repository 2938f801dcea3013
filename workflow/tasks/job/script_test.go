package job

import (
	"encoding/json"
	"testing"
)

// TestJobWarnsOfScripts checks that a reference to an output inside a shell script is a warning, because the shell
// executes it.
func TestJobWarnsOfScripts(t *testing.T) {
	for with, field := range map[string]string{
		`{"image": "x", "command": ["sh", "-c", "echo ${tasks.a.output}"]}`:                                                                                                "command[2]",
		`{"image": "x", "command": ["sh"], "args": ["-c", "echo ${tasks.a.output}"]}`:                                                                                      "args[1]",
		`{"image": "x", "args": ["env", "bash", "-c", "echo ${tasks.a.output}"]}`:                                                                                          "args[3]",
		`{"template": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "command": ["sh", "-c", "${tasks.a.output}"]}]}}}}`:                               "template.template.spec.containers[1].command[2]",
		`{"template": {"template": {"spec": {"initContainers": [{"name": "a", "command": ["sh", "-c"], "args": ["${tasks.a.output}"]}], "containers": [{"name": "b"}]}}}}`: "template.template.spec.initContainers[0].args[0]",
		`{"image": "x", "command": ["sh", "-ce", "echo ${tasks.a.output}"]}`:                                                                                               "command[2]",
		`{"image": "x", "command": ["bash", "-c", "-euo", "pipefail", "--", "echo ${tasks.a.output}"]}`:                                                                    "command[5]",
		`{"image": "x", "command": ["bash", "-o", "pipefail", "-c"], "args": ["echo ${tasks.a.output}"]}`:                                                                  "args[0]",
		`{"image": "x", "command": ["bash", "--rcfile", "/dev/null", "-c", "echo ${tasks.a.output}"]}`:                                                                     "command[4]",
		`{"image": "x", "command": ["bash", "-c", "--", "-x ${tasks.a.output}"]}`:                                                                                          "command[3]",
		`{"image": "x", "command": ["find", "sh", "-exec", "sh", "-c", "echo ${tasks.a.output}", ";"]}`:                                                                    "command[5]",
		`{"image": "x", "command": ["sh", "-c", "echo \"$1\"", "-c", "${tasks.a.output}"]}`:                                                                                "",
		`{"image": "x", "command": ["sh", "check.sh", "-c", "${tasks.a.output}"]}`:                                                                                         "",
		`{"image": "x", "command": ["sh", "-c", "--"]}`:                                                                                                                    "",
		`{"image": "x", "command": ["sh", "-c", "echo $X"], "env": [{"name": "X", "value": "${tasks.a.output}"}]}`:                                                         "",
		`{"image": "x", "command": ["check"], "args": ["${tasks.a.output}"]}`:                                                                                              "",
	} {
		problems := (&Kind{}).Validate(json.RawMessage(with))
		switch {
		case field == "" && len(problems) > 0:
			t.Errorf("%s: problems %v, want none", with, problems)
		case field != "" && (len(problems) != 1 || !problems[0].Warning || problems[0].Field != field):
			t.Errorf("%s: %v, want a warning about %s", with, problems, field)
		}
	}
}
