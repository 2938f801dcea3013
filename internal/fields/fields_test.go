package fields

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

type inner struct {
	name  string
	when  time.Time
	more  *inner
	empty struct{}
}

type outer struct {
	Exported int
	small    int8
	large    uint64
	part     float64
	yes      bool
	raw      []byte
	none     []string
	blank    []string
	list     []inner
	fixed    [3]int
	by       map[inner2]inner
	nothing  map[string]int
	cleared  map[string]int
	failed   any
	inner
}

type inner2 struct{ a, b string }

func sample() outer {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.FixedZone("", 3600))
	return outer{
		Exported: -7, small: -3, large: 1 << 63, part: 0.1, yes: true, raw: []byte("raw\x00"), none: nil, blank: []string{},
		list: []inner{{name: "é", when: at, more: &inner{name: "deep"}, empty: struct{}{}}, {}}, fixed: [3]int{1, 2, 3},
		by: map[inner2]inner{{"a", "b"}: {name: "one", when: at.UTC()}, {"a", "a"}: {}}, nothing: nil, cleared: map[string]int{}, failed: nil,
		inner: inner{name: "embedded"},
	}
}

func TestEverythingComesBack(t *testing.T) {
	want := sample()
	b, err := Append([]byte("before "), &want)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimPrefix(b, []byte("before "))
	var got outer
	if err := Read(b, &got); err != nil {
		t.Fatal(err)
	}
	for i := range want.list { // a zone without a name has another address each time
		if !want.list[i].when.Equal(got.list[i].when) {
			t.Errorf("%s came back as %s", want.list[i].when, got.list[i].when)
		}
		want.list[i].when, got.list[i].when = time.Time{}, time.Time{}
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("was %+v\nis  %+v", want, got)
	}
	for range 20 { // a map has another order each time
		again := sample()
		if other, err := Append(nil, &again); err != nil || !bytes.Equal(b, other) {
			t.Fatal("equal values have other bytes", err)
		}
	}
}

// What is damaged is an error, never a panic and never a reservation of memory.
func TestCut(t *testing.T) {
	v := sample()
	b, err := Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if Read(b[:n], new(outer)) == nil {
			t.Errorf("cut at %d it was read", n)
		}
		altered := bytes.Clone(b)
		altered[n] ^= 0x80
		_ = Read(altered, new(outer))
	}
	if Read(append(b, 0), new(outer)) == nil {
		t.Error("with a byte too many it was read")
	}
}

func TestWhatCannotBeSaved(t *testing.T) {
	for _, v := range []any{&struct{ f func() }{func() {}}, &struct{ e any }{1}} {
		if _, err := encode(nil, reflect.ValueOf(v).Elem()); err == nil {
			t.Errorf("%T was saved", v)
		}
	}
}
