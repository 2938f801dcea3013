package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Catalog converts the facts of one domain, which are Go structs, to events and back. E is the
// interface that all facts of the domain implement. A Catalog is safe for concurrent use.
type Catalog[E any] struct {
	kind   Kind
	byName map[string]*fact[E]
	byType map[reflect.Type]*fact[E]
}

type fact[E any] struct {
	Fact[E]
	upcasts map[int]func(json.RawMessage) (json.RawMessage, error)
}

// Fact is one entry of a catalog, created by Define or Upcast.
type Fact[E any] struct {
	name    string
	version int
	goType  reflect.Type // nil for an entry created by Upcast
	decode  func(json.RawMessage) (E, error)
	upcast  func(json.RawMessage) (json.RawMessage, error)
}

// Define declares that the struct T, which implements E, is the fact called name in its current version (1, 2, ...):
//
//	eventlog.Define[Event, Started]("started", 1)
func Define[E, T any](name string, version int) Fact[E] {
	return Fact[E]{name: name, version: version, goType: reflect.TypeFor[T](), decode: func(data json.RawMessage) (E, error) {
		var v T
		if err := decodeStrict(data, &v); err != nil {
			var none E
			return none, err
		}
		e, ok := any(v).(E) // NewCatalog has checked it
		if !ok {
			return e, fmt.Errorf("%T is not an event of this domain", v)
		}
		return e, nil
	}}
}

// decodeStrict decodes the data of an event. It fails on an unknown field, because a newer program
// wrote and uses the field: without it, this program would act on a different fact than the
// recorded one.
func decodeStrict(data json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	unknown := d.Decode(v)
	if unknown == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s: a newer program wrote it, upgrade this one", ErrUnknownType, strings.TrimPrefix(unknown.Error(), "json: "))
}

// Upcast declares how version from of a fact becomes version from+1. Old and New are the structs of
// the two versions. New is the current struct, or the Old of another Upcast. It is used on read;
// stored bytes are never rewritten.
//
//	eventlog.Upcast[Event]("started", 1, startedV1.v2)
func Upcast[E, Old, New any](name string, from int, f func(Old) New) Fact[E] {
	return Fact[E]{name: name, version: from, upcast: func(data json.RawMessage) (json.RawMessage, error) {
		var old Old
		if err := decodeStrict(data, &old); err != nil {
			return nil, err
		}
		return json.Marshal(f(old))
	}}
}

// NewCatalog returns the catalog of a domain. It panics if a fact does not implement E, if a name
// or a struct is defined twice, or if an upcast between version 1 and the current version is
// missing, because these are mistakes in the program.
func NewCatalog[E any](kind Kind, facts ...Fact[E]) *Catalog[E] {
	c := &Catalog[E]{kind: kind, byName: map[string]*fact[E]{}, byType: map[reflect.Type]*fact[E]{}}
	for _, f := range facts {
		if f.goType == nil {
			continue
		}
		if !f.goType.Implements(reflect.TypeFor[E]()) {
			panic(fmt.Sprintf("catalog of %s: %s does not implement %s", kind, f.goType, reflect.TypeFor[E]()))
		}
		if f.name == "" || strings.Contains(f.name, ".") || f.version < 1 {
			panic(fmt.Sprintf("catalog of %s: %q version %d: a name without dots and a version of 1 or more is needed", kind, f.name, f.version))
		}
		if c.byName[f.name] != nil || c.byType[f.goType] != nil {
			panic(fmt.Sprintf("catalog of %s: %s (%s) is defined twice", kind, f.name, f.goType))
		}
		e := &fact[E]{Fact: f, upcasts: map[int]func(json.RawMessage) (json.RawMessage, error){}}
		c.byName[f.name], c.byType[f.goType] = e, e
	}
	for _, f := range facts {
		if f.goType != nil {
			continue
		}
		e := c.byName[f.name]
		if e == nil || f.upcast == nil || f.version < 1 || f.version >= e.version || e.upcasts[f.version] != nil {
			panic(fmt.Sprintf("catalog of %s: the upcast of %q from version %d does not fit a defined fact", kind, f.name, f.version))
		}
		e.upcasts[f.version] = f.upcast
	}
	for name, e := range c.byName {
		if len(e.upcasts) != e.version-1 {
			panic(fmt.Sprintf("catalog of %s: %q is at version %d but has %d upcasts", kind, name, e.version, len(e.upcasts)))
		}
	}
	return c
}

// Types returns the event types that this program writes, each with its Go type.
func (c *Catalog[E]) Types() map[string]reflect.Type {
	types := make(map[string]reflect.Type, len(c.byType))
	for goType, f := range c.byType {
		types[formatType(c.kind, f.name, f.version)] = goType
	}
	return types
}

// Encode returns an event with the Type and Data of a fact. The caller sets the other fields, such
// as Actor, Time and Causation.
func (c *Catalog[E]) Encode(e E) (Event, error) {
	f := c.byType[reflect.TypeOf(e)]
	if f == nil {
		return Event{}, fmt.Errorf("encoding %T: %w: define it in the catalog of %s", e, ErrUnknownType, c.kind)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Event{}, fmt.Errorf("encoding %T: %w", e, err)
	}
	return Event{Type: formatType(c.kind, f.name, f.version), Data: data}, nil
}

// Decode returns the fact of an event, upcast to the current version. It returns ErrUnknownType if
// this program does not know the type, its version, or one of the fields. The event stays in the
// log. Only the aggregate that contains the event stops.
func (c *Catalog[E]) Decode(ev Event) (E, error) {
	var none E
	name, version, ok := c.parse(ev.Type)
	f := c.byName[name]
	if !ok || f == nil {
		return none, fmt.Errorf("decoding event %s of type %q: %w", ev.ID, ev.Type, ErrUnknownType)
	}
	if version > f.version {
		return none, fmt.Errorf("decoding event %s of type %q: %w: this program knows it up to version %d, upgrade it", ev.ID, ev.Type, ErrUnknownType, f.version)
	}
	data := ev.Data
	for v := version; v < f.version; v++ {
		var err error
		if data, err = f.upcasts[v](data); err != nil {
			return none, fmt.Errorf("decoding event %s of type %q: from version %d to %d: %w", ev.ID, ev.Type, v, v+1, err)
		}
	}
	e, err := f.decode(data)
	if err != nil {
		return none, fmt.Errorf("decoding event %s of type %q: %w", ev.ID, ev.Type, err)
	}
	return e, nil
}

// typePrefix is the prefix of every event type: dev.scute.<kind>.<name>.v<N>.
const typePrefix = "dev.scute."

// Fold calls apply with the facts of a stored commit, in order and with the times of their events.
// If one of the facts cannot be read, it returns an error and applies none of them.
func (c *Catalog[E]) Fold(r Record, apply func(fact E, at time.Time)) error {
	return c.Each(r, func(fact E, ev Event) { apply(fact, ev.Time) })
}

// Each works like Fold, but passes the stored event to apply instead of its time.
func (c *Catalog[E]) Each(r Record, apply func(fact E, ev Event)) error {
	events, err := r.Events()
	if err != nil {
		return err
	}
	facts := make([]E, len(events))
	for i, ev := range events {
		if facts[i], err = c.Decode(ev); err != nil {
			return err
		}
	}
	for i, fact := range facts {
		apply(fact, events[i])
	}
	return nil
}

func formatType(kind Kind, name string, version int) string {
	return typePrefix + string(kind) + "." + name + ".v" + strconv.Itoa(version)
}

func (c *Catalog[E]) parse(t string) (name string, version int, ok bool) {
	t, ok = strings.CutPrefix(t, typePrefix)
	if !ok {
		return "", 0, false
	}
	if t, ok = strings.CutPrefix(t, string(c.kind)+"."); !ok {
		return "", 0, false
	}
	name, v, ok := strings.Cut(t, ".v")
	if !ok {
		return "", 0, false
	}
	version, err := strconv.Atoi(v)
	return name, version, err == nil && version >= 1
}
