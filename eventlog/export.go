package eventlog

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// exportFormat must change with each change of the format.
const exportFormat = "scute.dev/log-export/v1"

// maxLine is more than the largest message needs, in bytes.
const maxLine = 128 << 20

// ExportHead is the first line of an export. Every other line is a commit.
type ExportHead struct {
	Format string `json:"format"`
	LogID  string `json:"logID"`
	// Last is the sequence of the last commit of the log when the export began.
	Last uint64 `json:"last"`
}

type line struct {
	Seq    uint64    `json:"seq"`
	Stored time.Time `json:"stored"`
	// Subject and Header are in base64 if Binary is set, because they are not UTF-8. scute writes
	// only UTF-8.
	Subject string `json:"subject"`
	// Header contains pairs of a name and a value, sorted by name. Values of the same name are in stored order.
	Header [][2]string `json:"header,omitempty"`
	Binary bool        `json:"binary,omitempty"`
	Data   []byte      `json:"data"`
}

// ExportWriter writes a log as text, one commit per line, without loss, so that the log can be
// verified without a server.
type ExportWriter struct {
	out     *bufio.Writer
	encoder *json.Encoder
}

// NewExportWriter returns an ExportWriter, and writes the first line.
func NewExportWriter(w io.Writer, head ExportHead) (*ExportWriter, error) {
	head.Format = exportFormat
	out := bufio.NewWriterSize(w, 256<<10)
	e := &ExportWriter{out, json.NewEncoder(out)}
	e.encoder.SetEscapeHTML(false)
	return e, e.encoder.Encode(head)
}

func (w *ExportWriter) Write(r Record) error {
	if err := w.encoder.Encode(lineOf(r)); err != nil {
		return fmt.Errorf("exporting commit %d: %w", r.Seq, err)
	}
	return nil
}

// Close flushes the buffer. It does not close the underlying writer.
func (w *ExportWriter) Close() error { return w.out.Flush() }

// EncodeLine returns the line of a commit without its line break.
func EncodeLine(r Record) ([]byte, error) { return json.Marshal(lineOf(r)) }

func lineOf(r Record) line {
	l := line{Seq: r.Seq, Stored: r.Stored.UTC(), Subject: r.subject, Data: r.data, Binary: !utf8.ValidString(r.subject)}
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		for _, value := range r.header[name] {
			l.Header = append(l.Header, [2]string{name, value})
			l.Binary = l.Binary || !utf8.ValidString(name) || !utf8.ValidString(value)
		}
	}
	if l.Binary { // JSON would not keep these bytes
		encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		l.Subject = encode(l.Subject)
		for i, f := range l.Header {
			l.Header[i] = [2]string{encode(f[0]), encode(f[1])}
		}
	}
	return l
}

// DecodeLine decodes the line of a commit.
func DecodeLine(data []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return Record{}, err
	}
	var failed error
	decode := func(s string) string {
		if !l.Binary {
			return s
		}
		b, err := base64.StdEncoding.DecodeString(s)
		failed = errors.Join(failed, err)
		return string(b)
	}
	header := make(map[string][]string, len(l.Header))
	for _, f := range l.Header {
		name := decode(f[0])
		header[name] = append(header[name], decode(f[1]))
	}
	r := NewRecord(l.Seq, l.Stored, decode(l.Subject), header, l.Data)
	return r, failed
}

// ExportReader reads an export.
type ExportReader struct {
	Head       ExportHead
	lines      *bufio.Scanner
	lineNumber int
}

// LineError is the error for a line that is not a commit. The lines after it can be read.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// NewExportReader returns an ExportReader, and reads the first line.
func NewExportReader(r io.Reader) (*ExportReader, error) {
	x := &ExportReader{lines: bufio.NewScanner(r), lineNumber: 1}
	x.lines.Buffer(make([]byte, 0, 256<<10), maxLine)
	if !x.lines.Scan() {
		return nil, fmt.Errorf("reading the export: %w", errors.Join(x.lines.Err(), errors.New("it is empty")))
	}
	if err := json.Unmarshal(x.lines.Bytes(), &x.Head); err != nil {
		return nil, fmt.Errorf("reading the export: its first line: %w", err)
	}
	if x.Head.Format != exportFormat {
		return nil, fmt.Errorf("reading the export: its format is %q: this program reads %s", x.Head.Format, exportFormat)
	}
	return x, nil
}

// Next returns the next commit, or io.EOF at the end. After a LineError the next line can be read.
func (x *ExportReader) Next() (Record, error) {
	if !x.lines.Scan() {
		if err := x.lines.Err(); err != nil {
			return Record{}, fmt.Errorf("reading the export after line %d: %w", x.lineNumber, err)
		}
		return Record{}, io.EOF
	}
	x.lineNumber++
	r, err := DecodeLine(x.lines.Bytes())
	if err != nil {
		return Record{}, &LineError{x.lineNumber, err}
	}
	return r, nil
}
