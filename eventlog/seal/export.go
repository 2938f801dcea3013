package seal

import "scute.dev/eventlog/export"

// MessageOfLine returns the sealed form of a line of an export.
func MessageOfLine(l export.Line) Message {
	m := Message{Seq: l.Seq, Stored: l.Stored, Subject: l.Subject, Data: l.Data}
	if len(l.Header) > 0 {
		m.Header = make(map[string][]string, len(l.Header))
		for _, f := range l.Header {
			m.Header[f[0]] = append(m.Header[f[0]], f[1])
		}
	}
	return m
}
