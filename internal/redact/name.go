package redact

import (
	"regexp"
	"slices"
	"strings"
)

// IsSecretName reports whether a field, header, parameter or variable of a name contains a secret.
func IsSecretName(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
	has := func(list []string, in func(s, part string) bool) bool {
		return slices.ContainsFunc(list, func(part string) bool { return in(name, part) })
	}
	if has([]string{
		"file", "path", "url", "uri", "ref", "name", "namespace", "id", "ids", "type", "length", "ttl", "seconds", "expiry",
		"pagetoken", "nexttoken", "continuationtoken",
	}, strings.HasSuffix) {
		return false // it describes the location or kind of a secret, or continues a list
	}
	return has([]string{"password", "passwd", "passphrase", "privatekey", "apikey", "accesskey", "secretkey", "clientkeydata"}, strings.Contains) ||
		has([]string{"token", "secret", "credential", "credentials", "cookie", "amzsignature", "googsignature"}, strings.HasSuffix) ||
		slices.Contains([]string{"authorization", "proxyauthorization", "pwd", "sig", "signature"}, name)
}

// assignment matches a name and the separator before a value; assigned matches a value.
var (
	assignment = regexp.MustCompile(`([A-Za-z_][\w.-]*)(["']?\s*[:=]\s*|\s+)`)
	assigned   = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&]+)`)
)

// redactNamed removes the values after names of secrets: token=..., "password": "...", --api-key
// ... It matches a value only to remove it, because for each of many names the value could be the
// whole rest of the text.
func redactNamed(text string) string {
	var clean strings.Builder
	for {
		at := assignment.FindStringSubmatchIndex(text)
		if at == nil {
			clean.WriteString(text)
			return clean.String()
		}
		name, between, rest := text[at[2]:at[3]], text[at[4]:at[5]], text[at[5]:]
		value := ""
		if !strings.HasPrefix(rest, Removed) && precedesSecret(text[:at[2]], name, between) {
			value = assigned.FindString(rest)
		}
		if value == "" || slices.Contains(rejectionPrefixes(), value) {
			clean.WriteString(text[:at[3]]) // another name may follow the separator
			text = text[at[3]:]
			continue
		}
		clean.WriteString(text[:at[5]] + Removed)
		text = rest[len(value):]
	}
}

// rejectionPrefixes returns the first words of an API server's message about a field:
// "spec.users[0].passwd: Required value".
func rejectionPrefixes() []string {
	return []string{"Invalid", "Unsupported", "Duplicate", "Required", "Forbidden:", "Internal", "Too", "Not"}
}

// precedesSecret reports whether a secret follows a name and its separator. None follows "Secret:
// ", the kind of an object. Without : or =, a secret follows only a flag ("--token x").
func precedesSecret(before, name, between string) bool {
	if strings.TrimSpace(between) == "" && !strings.HasSuffix(before, "--") {
		return false
	}
	return name != "Secret" && IsSecretName(name[strings.LastIndexByte(name, '.')+1:])
}
