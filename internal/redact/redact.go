package redact

import (
	"regexp"
	"strings"
)

// Removed is written in place of a secret.
const Removed = "(removed)"

// longest a message may be, in bytes; considered is how much of it is looked at. Who answers may send MiB, and the looking
// for secrets takes seconds for each.
const (
	longest    = 1000
	considered = 8 << 10
)

// Message makes one message of another program fit for the log: without what looks like a secret, without the values of
// fields, and cut to a sane length.
//
// An API server that refuses an object quotes the field's value, and a webhook may quote it again in the explanation
// that follows: everything after "Invalid value:" and the like goes.
func Message(message string) string {
	cut := len(message) > considered
	if cut {
		message = strings.ToValidUTF8(message[:considered], "")
	}
	message = fromFieldValue.ReplaceAllString(message, "${1} "+Removed)
	message = Text(message)
	if cut && len(message) <= longest {
		message = message[:max(0, strings.LastIndexAny(message, " \t\n"))] + "..." // half a secret does not look like one
	}
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "..."
	}
	return message
}

// fieldValue is where an API server begins to quote the value of a field that it refuses.
const fieldValue = `\b((?:Invalid|Unsupported|Duplicate) value:|Not found:) *`

// What is looked for is compiled once: each error that is logged passes through here, and to compile it takes longer than to
// find it.
var (
	fromFieldValue = regexp.MustCompile("(?s)" + fieldValue + ".*")
	fieldValueLine = regexp.MustCompile(fieldValue + ".*")
	authorization  = regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*)[^\n]+`)
	bearer         = regexp.MustCompile(`(?i)\b(bearer|basic)\s+([\w.~+/=-]+)`)
	token          = regexp.MustCompile(
		`eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*` + // a JSON web token
			`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b` + // a bootstrap token
			`|\b(?:gh[pousr]|github_pat|npm|dckr_pat)_\w{4,}` + // tokens that say whose they are
			`|\b(?:glpat|xox[abeoprs]|sk)-[\w-]{8,}` +
			`|\bhv[bsr]\.[\w-]{8,}` +
			`|\bA(?:KIA|SIA)[0-9A-Z]{12,}` +
			`|\bAIza[\w-]{30,}` +
			`|[A-Za-z0-9+/=]{80,}`, // a key or a whole kubeconfig in base64
	)
	userinfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"']*@`)
	// A password may have what a URL cannot, a slash or a space, where somebody has forgotten to escape it. A port has neither.
	oddUserinfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"':@[]*):([^\s"'@]*(?: [^\s"'@]+)?)@(sha\d+:)?`)
	port        = regexp.MustCompile(`^\d{1,5}(?:[^\w]|$)`)
	// A host is followed by a path. One of a single word may be a part of a password, unless it has a port.
	host   = regexp.MustCompile(`^(?:[\w-]+(?:\.[\w-]+)+(?::\d{1,5})?|localhost|[\w-]+:\d{1,5}|\[[^\s/@]*\](?::\d{1,5})?)(?:[/?#]|$)`)
	digest = regexp.MustCompile(`^sha\d+:`)
	block  = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`)
)

// Text takes out of a text what looks like a secret, by its form or by the name before it.
func Text(text string) string {
	text = keys(text)
	text = fieldValueLine.ReplaceAllString(text, "${1} "+Removed)
	text = authorization.ReplaceAllString(text, "${1}"+Removed)
	text = bearer.ReplaceAllStringFunc(text, credential)
	text = token.ReplaceAllString(text, Removed)
	text = userinfo.ReplaceAllString(text, "${1}"+Removed+"@")
	text = oddUserinfo.ReplaceAllStringFunc(text, func(found string) string {
		parts := oddUserinfo.FindStringSubmatch(found)
		isHost, sentence := host.MatchString(parts[2]), strings.Contains(parts[3], " ")
		if port.MatchString(parts[3]) && (isHost || sentence || parts[4] != "") {
			return found
		}
		return parts[1] + Removed + "@" + parts[4]
	})
	return named(passwordRests(text))
}

// passwordRests takes out what remains of passwords that have an @ and a slash: the user's part of a URL ends at the first @ before a slash.
func passwordRests(text string) string {
	const removed = "://" + Removed + "@"
	parts := strings.Split(text, removed)
	for i, part := range parts[1:] {
		end := len(part)
		if at := strings.IndexAny(part, " \t\r\n\"'"); at >= 0 {
			end = at
		}
		if at := strings.Index(part[:end], "://"); at >= 0 { // another URL
			end = at
		}
		last := strings.LastIndexByte(part[:end], '@')
		if last >= 0 && !host.MatchString(part[:last]) && !digest.MatchString(part[last+1:]) {
			parts[i+1] = part[last+1:]
		}
	}
	return strings.Join(parts, removed)
}

// keys takes out PEM blocks: what spans lines.
func keys(text string) string {
	return block.ReplaceAllString(text, Removed)
}

// credential keeps the words of a sentence ("a Bearer token is needed"), and removes what may be a credential.
func credential(found string) string {
	scheme, value, _ := strings.Cut(found, " ")
	const word = 12
	if len(value) <= word && !strings.ContainsAny(value, "0123456789.~+/=_-") {
		return found
	}
	return scheme + " " + Removed
}
