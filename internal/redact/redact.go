package redact

import (
	"regexp"
	"strings"
)

// Removed replaces a secret.
const Removed = "(removed)"

// maxLength limits a redacted message, and maxInput the part of the original that is searched, both
// in bytes. A server may send MiBs, and the search takes seconds per MiB.
const (
	maxLength = 1000
	maxInput  = 8 << 10
)

// Message makes a message of another program safe for the log: it removes secrets and shortens the
// message. It also removes all text after "Invalid value:" and the like, because an API server
// quotes the value of a field that it rejects, and a webhook may quote it again.
func Message(message string) string {
	cut := len(message) > maxInput
	if cut {
		message = strings.ToValidUTF8(message[:maxInput], "")
	}
	message = fromFieldValue.ReplaceAllString(message, "${1} "+Removed)
	message = Text(message)
	if cut && len(message) <= maxLength {
		message = message[:max(0, strings.LastIndexAny(message, " \t\n"))] + "..." // a part of a secret may not have the form of a secret
	}
	if len(message) > maxLength {
		message = strings.ToValidUTF8(message[:maxLength], "") + "..."
	}
	return message
}

const fieldValue = `\b((?:Invalid|Unsupported|Duplicate) value:|Not found:) *`

// Compile the expressions once: each logged error is searched, and compiling takes longer than
// searching.
var (
	fromFieldValue = regexp.MustCompile("(?s)" + fieldValue + ".*")
	fieldValueLine = regexp.MustCompile(fieldValue + ".*")
	authorization  = regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*)[^\n]+`)
	bearer         = regexp.MustCompile(`(?i)\b(bearer|basic)\s+([\w.~+/=-]+)`)
	token          = regexp.MustCompile(
		`eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*` + // a JSON web token
			`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b` + // a bootstrap token
			`|\b(?:gh[pousr]|github_pat|npm|dckr_pat)_\w{4,}` + // tokens with a prefix of their issuer
			`|\b(?:glpat|xox[abeoprs]|sk)-[\w-]{8,}` +
			`|\bhv[bsr]\.[\w-]{8,}` +
			`|\bA(?:KIA|SIA)[0-9A-Z]{12,}` +
			`|\bAIza[\w-]{30,}` +
			`|[A-Za-z0-9+/=]{80,}`, // a key or a whole kubeconfig in base64
	)
	userinfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"']*@`)
	// A password that is not escaped may contain a slash or a space, although a URL must not. A
	// port contains neither.
	unescapedUserinfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"':@[]*):([^\s"'@]*(?: [^\s"'@]+)?)@(sha\d+:)?`)
	port              = regexp.MustCompile(`^\d{1,5}(?:[^\w]|$)`)
	// A path follows a host. A single word without a port may be a part of a password.
	host     = regexp.MustCompile(`^(?:[\w-]+(?:\.[\w-]+)+(?::\d{1,5})?|localhost|[\w-]+:\d{1,5}|\[[^\s/@]*\](?::\d{1,5})?)(?:[/?#]|$)`)
	digest   = regexp.MustCompile(`^sha\d+:`)
	pemBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`)
)

// Text removes secrets, which it detects by their form or by the name before them.
func Text(text string) string {
	text = redactKeys(text)
	text = fieldValueLine.ReplaceAllString(text, "${1} "+Removed)
	text = authorization.ReplaceAllString(text, "${1}"+Removed)
	text = bearer.ReplaceAllStringFunc(text, redactCredential)
	text = token.ReplaceAllString(text, Removed)
	text = userinfo.ReplaceAllString(text, "${1}"+Removed+"@")
	text = unescapedUserinfo.ReplaceAllStringFunc(text, func(found string) string {
		parts := unescapedUserinfo.FindStringSubmatch(found)
		isHost, sentence := host.MatchString(parts[2]), strings.Contains(parts[3], " ")
		if port.MatchString(parts[3]) && (isHost || sentence || parts[4] != "") {
			return found
		}
		return parts[1] + Removed + "@" + parts[4]
	})
	return redactNamed(redactPasswordRest(text))
}

// redactPasswordRest removes the rest of a password that contains an @ and a slash: the user part
// of a URL ends at the first @ before a slash.
func redactPasswordRest(text string) string {
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

func redactKeys(text string) string {
	return pemBlock.ReplaceAllString(text, Removed)
}

// redactCredential removes the value after an authorization scheme, but keeps words of a sentence
// ("a Bearer token is needed").
func redactCredential(found string) string {
	scheme, value, _ := strings.Cut(found, " ")
	const word = 12
	if len(value) <= word && !strings.ContainsAny(value, "0123456789.~+/=_-") {
		return found
	}
	return scheme + " " + Removed
}

const maxTail = 900

// Tail returns the last lines of a text for the log, shortened and without secrets.
func Tail(text string) string {
	// Before the cut: a part of a key does not have the form of a key.
	text = redactKeys(text)
	if i := strings.LastIndex(text, "-----END "); i >= 0 { // its beginning is missing
		text = Removed + strings.TrimLeft(text[i+len("-----END "):], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -")
	}
	text = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{80,}`).ReplaceAllString(text, Removed)
	text = Text(text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if over := len(text) - maxTail; over > 0 {
		text = text[over:]
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
		text = strings.ToValidUTF8(text, "")
	}
	return Message(text)
}
