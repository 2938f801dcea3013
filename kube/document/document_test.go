package document

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// expandingTexts returns short texts that expand to much.
func expandingTexts() map[string]string {
	x := func(s string, n int) string { return strings.Repeat(s, n) }
	nested := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		nested += fmt.Sprintf("a%d: &a%[1]d [%s]\n", i+1, strings.TrimSuffix(x(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	var distinct, tags strings.Builder
	for i := range 110_000 {
		fmt.Fprintf(&distinct, "%x, ", i)
		fmt.Fprintf(&tags, "%%TAG !%x! x\r", i)
	}
	return map[string]string{
		"a long text, often":          "x: &a " + x("z", 100<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"a long key, often":           "k: &a " + x("k", 100<<10) + "\ny: [" + x("{*a : 1},", 3000) + "]\n",
		"merged":                      "x: &a {k: " + x("z", 100<<10) + "}\ny: [" + x("{<<: *a},", 3000) + "]\n",
		"merged from a list":          "x: &a {k: " + x("z", 100<<10) + "}\ny: [" + x("{<<: [*a]},", 3000) + "]\n",
		"a billion laughs":            nested,
		"a binary text, often":        "x: &a !!binary " + x("QUFB", 25<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"a long number, often":        "x: &a 1" + x("1", 100<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"keys of a later document":    "a: b\n---\nx: &a 1" + x("1", 100<<10) + "\n" + x("*a : 1\n", 3000),
		"before an error":             "[&a 1" + x("1", 100<<10) + x(", *a", 3000) + "]\n, *",
		"objects, often":              "x: &a [" + x("{a: 1},", 1000) + "]\ny: [" + x("*a,", 300) + "]\n",
		"in a later document":         "a: b\n---\nx: &a " + x("z", 100<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"after a separator of a kind": "x: &a " + x("z", 100<<10) + "\n---#c: d\ny: [" + x("*a,", 3000) + "]\n",
		"after JSON":                  `{"a": 1}` + "\n---\nx: &a " + x("z", 100<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"in the line of JSON":         `{"a": 1} x: &a ` + x("z", 100<<10) + "\ny: [" + x("*a,", 3000) + "]\n",
		"small values":                "[" + x("0,", 500_000) + "]",
		"small values of JSON":        `{"a": [` + x("0,", 500_000) + "0]}",
		"small objects":               "[" + x("{a},", 250_000) + "]",
		"small objects of JSON":       `{"a": [` + x(`{"a":0},`, 120_000) + "0]}",
		"small objects in blocks":     x("- a: 0\n", 150_000),
		"other line breaks":           x("- a: 0\r", 150_000),
		"keys without values":         "{" + distinct.String() + "}",
		"many documents":              x("[{a},{a},{a}]\n---\n", 60_000),
		"deep":                        x("[", 5000) + x("]", 5000),
		"deep JSON":                   x(`{"a":`, 5000) + "1" + x("}", 5000),
		"deep blocks":                 x("- ", 5000) + "a",
		"directives":                  tags.String() + "---\na: b\n",
		"directives in UTF-16":        "\xff\xfe" + strings.Join(strings.Split(strings.Replace(tags.String(), "\r", "\n", -1), ""), "\x00") + "\x00",
		"long":                        "a: " + x("b", MaxSize),
	}
}

// TestBombs checks that a text that expands to much is rejected by each decoding function, with little memory and time.
func TestBombs(t *testing.T) {
	for name, text := range expandingTexts() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			var failed error
			for _, err := range Each([]byte(text)) {
				failed = errors.Join(failed, err)
			}
			if failed == nil {
				t.Error("Each accepts the text")
			}
			bounded := CheckBounds([]byte(text))
			if !errors.Is(bounded, ErrTooLarge) && name != "in the line of JSON" { // of which a library decodes only the JSON
				t.Errorf("CheckBounds = %v, want ErrTooLarge", bounded)
			}
			var v any
			first := !strings.Contains(name, "document") && !strings.Contains(name, "JSON") || strings.HasSuffix(name, "of JSON") || name == "deep JSON"
			if err := Unmarshal([]byte(text), &v); first && err == nil {
				t.Error("Unmarshal accepts the text")
			}
			runtime.ReadMemStats(&after)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			const most = 600 << 20 // allocated by all three functions together, in sequence
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%d MiB were allocated", took>>20)
			}
			t.Logf("%d KiB: %s, %d MiB allocated: %v", len(text)>>10, time.Since(begin).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, failed)
		})
	}
}

// TestUsualTexts checks that common texts are decoded as by another library.
func TestUsualTexts(t *testing.T) {
	var crd strings.Builder
	crd.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n")
	for i := range 5_000 {
		fmt.Fprintf(&crd, "  key-%d: \"a value, with [some] marks: - and others\"\n", i)
	}
	for name, text := range map[string]string{
		"anchors":      "defaults: &d {cpu: 1, memory: 1Gi}\na: *d\nb:\n  <<: *d\n  cpu: 2\nc: {<<: [*d, {x: y}]}\n",
		"a large text": "data: |\n" + strings.Repeat("  1,2,3,4,5,6,7,8\n", 10_000),
		"large":        crd.String(),
		"asterisks":    "rules: [{apiGroups: ['*'], resources: [\"*\"], verbs: [get]}]\nrun: a && b &\n",
	} {
		if err := CheckBounds([]byte(text)); err != nil {
			t.Errorf("%s: Bounded = %v", name, err)
		}
		var have, want any
		if err := errors.Join(Unmarshal([]byte(text), &have), yaml.Unmarshal([]byte(text), &want)); err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%s: decoded differently, error %v", name, err)
		}
	}
}

// TestReadsAsKubectl checks that Each returns the same documents as kubectl's decoder, for any text, and rejects texts
// from which kubectl would lose a document or change a key.
func TestReadsAsKubectl(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"---\n", "---", "--- # c\n", "--- x\n", "...\n", "\n", " ", "# c\n", "{\"a\": 1}", "{\"b\": [1.0, 2e3]}", "[1]", "{a: b}", "a: 1\n", "b: &x {c: [1, 2]}\n", "c: *x\n", "d: {<<: *x}\n", "y: 1\n", "\r---\r", "\r...\r",
		"- a\n", "\t", "\r\n", "\"q\"", "|\n  x\n", "null", "true\n", "%YAML 1.1\n", "e: !!binary aGk=\n", "f: 1.0\n", "? g\n", ": h\n", "\"\\u0041\"", "}", "\u2028",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
		var want, have []string
		theirs := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
		for {
			var raw json.RawMessage
			err := theirs.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				want = append(want, "error")
				break
			}
			want = append(want, normalizeJSON(raw))
		}
		for raw, err := range Each([]byte(text)) {
			switch {
			case losesContent(err):
				want = want[:min(len(want), len(have))]
			case err != nil:
				have = append(have, "error")
			default:
				have = append(have, normalizeJSON(raw))
			}
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("%q:\ngot  %s\nwant %s", text, have, want)
		}
	})
}

// TestNothingIsLost checks that a document that would be lost, and a key that is not a string, are errors with a
// remedy.
func TestNothingIsLost(t *testing.T) {
	for text, lost := range map[string]bool{
		"a: 1\n...\nb: 2\n":       true,
		"a: 1\r---\rb: 2\r":       true,
		"a: 1\r--- {b: 2}\r":      true,
		"a: 1\n...\n# c\n":        false,
		"a: 1\n...\n---\nb: 2\n":  false,
		"data: {n: 1}":            true,
		"a: [{on: 1}]":            true,
		"data: {0755: x}":         true,
		"data: {1_000: x}":        true,
		"data: {1.10: x}":         true,
		"data: {\"y\": 1, 80: x}": false,
		"data: {80: 'at 08: x'}":  false,
	} {
		var all error
		for _, err := range Each([]byte(text)) {
			all = errors.Join(all, err)
		}
		if losesContent(all) != lost || !lost && all != nil {
			t.Errorf("Each(%q) = %v", text, all)
		}
		if err := Check([]byte(text)); !strings.Contains(text, "\n---\n") && losesContent(err) != lost {
			t.Errorf("Check(%q) = %v", text, err)
		}
		var v any
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("Unmarshal(%q) = %v", text, err)
		}
	}
	if err := Check([]byte("a: [{b: {on: 1}}]\nn: y")); err == nil || !strings.HasPrefix(err.Error(), "YAML reads a key of a.0.b and of the document as") {
		t.Error(err)
	}
}

// TestChangedKeysAreBounded checks that a short text with many changed keys, nested or below a long key, is rejected
// with little memory and a short error.
func TestChangedKeysAreBounded(t *testing.T) {
	long := strings.Repeat("k", 100<<10)
	for name, text := range map[string]string{
		"behind a long key": "? " + long + "\n: [" + strings.Repeat("{on: 1},", 20_000) + "]\n",
		"beside numbers":    "? " + long + "\n: [" + strings.Repeat("1,", 20_000) + "]\non: 1\n",
		"deep":              strings.Repeat("{a: ", 400) + "{on: 1}" + strings.Repeat("}", 400),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Check([]byte(text))
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; !losesContent(err) || len(err.Error()) > 10_000 || took > 200 {
			t.Errorf("%s: %d MiB were allocated: %.200v", name, took, err)
		}
	}
}

// TestUTF16 checks that UTF-16, as editors on Windows save it, is decoded completely.
func TestUTF16(t *testing.T) {
	const text = "a: 1\n---\nb: \u00e4\U0001f600\n"
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var encoded []byte
		for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
			encoded = order.AppendUint16(encoded, unit)
		}
		var have []string
		for raw, err := range Each(encoded) {
			have = append(have, fmt.Sprint(string(raw), err))
		}
		if fmt.Sprint(have) != "[{\"a\":1}<nil> {\"b\":\"\u00e4\U0001f600\"}<nil>]" {
			t.Errorf("Each in %s = %v", order, have)
		}
	}
}

// normalizeJSON returns JSON without differences between decoders.
func normalizeJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return strings.TrimSpace(string(raw))
}

// TestNeverMore checks that the output of Each is never much larger than the text, for any references within it.
func TestNeverMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		names := rapid.IntRange(1, 6).Draw(t, "names")
		for i := range names {
			fmt.Fprintf(&text, "k%d: &a%[1]d ", i)
			switch refers := rapid.IntRange(0, 400).Draw(t, "refers"); {
			case i == 0 || refers == 0:
				text.WriteString(strings.Repeat("z", rapid.IntRange(0, 40_000).Draw(t, "size")) + "x\n")
			case refers%2 == 0:
				text.WriteString("[" + strings.Repeat(fmt.Sprintf("*a%d, ", rapid.IntRange(0, i-1).Draw(t, "to")), refers) + "]\n")
			default:
				text.WriteString("{")
				for n := range refers {
					fmt.Fprintf(&text, "n%d: *a%d, ", n, rapid.IntRange(0, i-1).Draw(t, "to"))
				}
				text.WriteString("}\n")
			}
		}
		size, values := 0, 0
		for raw, err := range Each([]byte(text.String())) {
			if err == nil {
				n, _ := countJSONValues(raw)
				size, values = size+len(raw), values+n
			}
		}
		if size > 2*text.Len()+maxAliasGrowth+20*maxValues || values > 2*maxValues {
			t.Fatalf("%d bytes became %d, with %d values", text.Len(), size, values)
		}
	})
}
