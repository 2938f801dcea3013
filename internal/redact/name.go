package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Name says whether a field, header, parameter or variable of that name holds a secret.
func Name(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
	has := func(list []string, in func(s, part string) bool) bool {
		return slices.ContainsFunc(list, func(part string) bool { return in(name, part) })
	}
	if has([]string{
		"file", "path", "url", "uri", "ref", "name", "namespace", "id", "ids", "type", "length", "ttl", "seconds", "expiry",
		"pagetoken", "nexttoken", "continuationtoken",
	}, strings.HasSuffix) {
		return false // it says where or what a secret is, or where a list continues
	}
	return has([]string{"password", "passwd", "passphrase", "privatekey", "apikey", "accesskey", "secretkey", "clientkeydata"}, strings.Contains) ||
		has([]string{"token", "secret", "credential", "credentials", "cookie", "amzsignature", "googsignature"}, strings.HasSuffix) ||
		slices.Contains([]string{"authorization", "proxyauthorization", "pwd", "sig", "signature"}, name)
}

// assignment is a name, and what is between it and a value; assigned is a value.
var (
	assignment = regexp.MustCompile(`([A-Za-z_][\w.-]*)(["']?\s*[:=]\s*|\s+)`)
	assigned   = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&]+)`)
)

// named takes out what follows a telling name: token=..., "password": "...", --api-key ... A value is looked for only where it goes: each
// of many names may have all that follows for one.
func named(text string) string {
	var clean strings.Builder
	for {
		at := assignment.FindStringSubmatchIndex(text)
		if at == nil {
			clean.WriteString(text)
			return clean.String()
		}
		name, between, rest := text[at[2]:at[3]], text[at[4]:at[5]], text[at[5]:]
		value := ""
		if !strings.HasPrefix(rest, Removed) && tells(text[:at[2]], name, between) {
			value = assigned.FindString(rest)
		}
		if value == "" || slices.Contains(refusals(), value) {
			clean.WriteString(text[:at[3]]) // what follows it may be a name itself
			text = text[at[3]:]
			continue
		}
		clean.WriteString(text[:at[5]] + Removed)
		text = rest[len(value):]
	}
}

// refusals are the first words of what an API server says of a field: "spec.users[0].passwd: Required value".
func refusals() []string {
	return []string{"Invalid", "Unsupported", "Duplicate", "Required", "Forbidden:", "Internal", "Too", "Not"}
}

// tells says whether a name with what is between it and a value announces a secret. "Secret: ..." is the kind of an
// object; without : or = only a flag does ("--token x").
func tells(before, name, between string) bool {
	if strings.TrimSpace(between) == "" && !strings.HasSuffix(before, "--") {
		return false
	}
	return name != "Secret" && Name(name[strings.LastIndexByte(name, '.')+1:])
}
