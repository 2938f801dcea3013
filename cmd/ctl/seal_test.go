package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/seal"
)

// sealLog seals the log in a folder, and writes an auditor's files to another folder: the public key, all checkpoints,
// and each checkpoint in a file named by its number.
//
//	seallog FOLDER KEPT
func sealLog(ctx context.Context, args []string) (err error) {
	log, err := embedded.Open(ctx, embedded.Options{Dir: args[0]})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	key, err := keyIn(filepath.Join(args[0], "key.pem"))
	if err != nil {
		return err
	}
	sealer, err := seal.OpenSealer(filepath.Join(args[0], seal.Folder), log, key)
	if err != nil {
		return err
	}
	defer sealer.Close()
	_, signed, err := sealer.Seal(ctx)
	if err != nil {
		return err
	}
	public, err := key.Public(log.ID())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[1], 0o700); err != nil {
		return err
	}
	all, _ := os.ReadFile(filepath.Join(args[1], "checkpoints"))
	n := len(seal.SplitNotes(all)) + 1
	return errors.Join(
		os.WriteFile(filepath.Join(args[1], "key"), []byte(public+"\n"), 0o600),
		os.WriteFile(filepath.Join(args[1], "checkpoints"), append(append(all, signed...), '\n'), 0o600),
		os.WriteFile(filepath.Join(args[1], strconv.Itoa(n)), signed, 0o600),
	)
}

func keyIn(path string) (seal.Key, error) {
	if text, err := os.ReadFile(path); err == nil {
		return seal.ParseKey(text)
	}
	key, err := seal.NewKey()
	if err != nil {
		return key, err
	}
	text, err := key.PEM()
	if err != nil {
		return key, err
	}
	return key, os.WriteFile(path, text, 0o600)
}

// forge forges an export or a proof.
//
//	alter change|remove|swap|garble SEQUENCE IN OUT
//	alter proof 0 IN OUT
func forge(args []string) error {
	seq, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	switch args[0] {
	case "change":
		lines[seq], err = edit(lines[seq], func(r eventlog.Record) eventlog.Record {
			return eventlog.NewRecord(r.Seq, r.Stored, r.Subject(), r.Header(), append(r.Data(), ' '))
		})
	case "remove":
		lines[seq] = nil
	case "garble":
		lines[seq] = lines[seq][:len(lines[seq])/2]
		lines[seq] = append(lines[seq][:len(lines[seq]):len(lines[seq])], '\n')
	case "swap":
		var a, b []byte
		if a, err = edit(lines[seq], func(r eventlog.Record) eventlog.Record { r.Seq++; return r }); err == nil {
			b, err = edit(lines[seq+1], func(r eventlog.Record) eventlog.Record { r.Seq--; return r })
		}
		lines[seq], lines[seq+1] = b, a
	case "proof":
		lines[1], err = editLeaf(lines[1])
	default:
		err = fmt.Errorf("alter cannot %s", args[0])
	}
	if err != nil {
		return err
	}
	return os.WriteFile(args[3], bytes.Join(lines, nil), 0o600)
}

func edit(line []byte, change func(eventlog.Record) eventlog.Record) ([]byte, error) {
	r, err := eventlog.DecodeLine(line)
	if err != nil {
		return nil, err
	}
	out, err := eventlog.EncodeLine(change(r))
	return append(out, '\n'), err
}

// editLeaf forges the commit in a proof.
func editLeaf(line []byte) ([]byte, error) {
	leaf, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("extra ")))))
	if err != nil {
		return nil, err
	}
	m, err := seal.ParseLeaf(leaf)
	if err != nil {
		return nil, err
	}
	forged := eventlog.NewRecord(m.Seq, m.Stored, m.Subject()+"x", m.Header(), m.Data())
	return fmt.Appendf(nil, "extra %s\n", base64.StdEncoding.EncodeToString(seal.AppendLeaf(nil, forged))), nil
}
