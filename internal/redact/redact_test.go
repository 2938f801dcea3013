package redact_test

import (
	"strings"
	"testing"

	"scute.dev/internal/redact"
)

func TestMessage(t *testing.T) {
	for message, want := range map[string]string{
		// Values that an API server or a webhook quotes, and the text after them.
		`KubeadmConfig.bootstrap.cluster.x-k8s.io "a" is invalid: spec.users[0].passwd: Invalid value: "hunter2": hunter2 is no hash`: `KubeadmConfig.bootstrap.cluster.x-k8s.io "a" is invalid: spec.users[0].passwd: Invalid value: (removed)`,
		`denied the request: spec.identity.awsSecretAccessKey: Invalid value: "hunter2"`:                                              `denied the request: spec.identity.awsSecretAccessKey: Invalid value: (removed)`,
		"x: [a: Unsupported value: \"hunter2\": supported values: \"b\",\nb: Invalid value: \"hunter2\"]":                             `x: [a: Unsupported value: (removed)`,
		`a: Duplicate value: "hunter2"`: `a: Duplicate value: (removed)`,
		`a: Not found: "hunter2"`:       `a: Not found: (removed)`,
		// By their form.
		`Bearer hunter2.a is not accepted`:                                                  `Bearer (removed) is not accepted`,
		`a Bearer token is needed, basic auth is not`:                                       `a Bearer token is needed, basic auth is not`,
		`Authorization: Basic hunter2`:                                                      `Authorization: (removed)`,
		`fatal: ghp_hunter2 was refused`:                                                    `fatal: (removed) was refused`,
		`dial postgres://u:hunter2@db/x`:                                                    `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun/ter2@db/x`:                                                   `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun ter2@db/x`:                                                   `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun?ter#2@db/x`:                                                  `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun:te/r2@db/x`:                                                  `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun:t er2@db/x`:                                                  `dial postgres://(removed)@db/x`,
		`dial postgres://u:12345/x@db/x`:                                                    `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun@ter/2@db/x`:                                                  `dial postgres://(removed)@db/x`,
		`dial postgres://u:hun@te?r/2@3@db.example.com/x`:                                   `dial postgres://(removed)@db.example.com/x`,
		`dial postgres://u:hun/ter@2@db/x`:                                                  `dial postgres://(removed)@db/x`,
		`dial nats://u:h@un/ter2@a:4222,nats://u:h@un/ter2@b:4222`:                          `dial nats://(removed)@a:4222,nats://(removed)@b:4222`,
		`dial nats://u:hunter2@a:4222,nats://u:hunter2@b:4222`:                              `dial nats://(removed)@a:4222,nats://(removed)@b:4222`,
		`get https://u:hunter2@git.example.com/a/b@v1.2.3`:                                  `get https://(removed)@git.example.com/a/b@v1.2.3`,
		`get https://u:hunter2@registry/a@sha256:0`:                                         `get https://(removed)@registry/a@sha256:0`,
		`get https://u:hunter2@registry:5000/a@b`:                                           `get https://(removed)@registry:5000/a@b`,
		`pull oci://registry:5000/a:v1@sha256:0`:                                            `pull oci://registry:5000/a:v1@sha256:0`,
		`get http://localhost:8080/a@v1.2.3`:                                                `get http://localhost:8080/a@v1.2.3`,
		`get https://db:443: ask me@example.com`:                                            `get https://db:443: ask me@example.com`,
		`get https://[fd00::1]:6443/a@b`:                                                    `get https://[fd00::1]:6443/a@b`,
		`pull oci://r.example.com:5000/a:v1@sha256:0`:                                       `pull oci://r.example.com:5000/a:v1@sha256:0`,
		`get https://db.example.com:443/a, me@example.com`:                                  `get https://db.example.com:443/a, me@example.com`,
		`get https://db.example.com:443: ask me@example.com`:                                `get https://db.example.com:443: ask me@example.com`,
		`GET https://b/k?X-Amz-Signature=hunter2&X-Amz-Security-Token=hunter2&X-Amz-Date=1`: `GET https://b/k?X-Amz-Signature=(removed)&X-Amz-Security-Token=(removed)&X-Amz-Date=1`,
		`clone https://hunter2@git.example.com/x.git`:                                       `clone https://(removed)@git.example.com/x.git`,
		`postgres://db.example.com/x, me@example.com`:                                       `postgres://db.example.com/x, me@example.com`,
		`token abcdef.0123456789abcdef is unknown`:                                          `token (removed) is unknown`,
		"a\n-----BEGIN PRIVATE KEY-----\nhunter2":                                           "a\n(removed)",
		`key ` + strings.Repeat("A", 80):                                                    `key (removed)`,
		`eyJhunter2hunter2.hunter2hunter2.hunter2: no such key`:                             `(removed): no such key`,
		// By the name before them.
		`GET /x?token=hunter2&page=2`: `GET /x?token=(removed)&page=2`,
		`{"Code":"Success","AccessKeyId":"a","AccessKeySecret":"hunter2","SecurityToken":"hun ter2"}`: `{"Code":"Success","AccessKeyId":"a","AccessKeySecret":(removed),"SecurityToken":(removed)}`,
		`DB_PASSWORD=hunter2 api-token: 'hunter2'`:                                                    `DB_PASSWORD=(removed) api-token: (removed)`,
		`X-Api-Key: hunter2`:                   `X-Api-Key: (removed)`,
		`run --password hunter2 --name x`:      `run --password (removed) --name x`,
		`AWS_SECRET_ACCESS_KEY=hunter2`:        `AWS_SECRET_ACCESS_KEY=(removed)`,
		`client_secret = "hunter2 and more"`:   `client_secret = (removed)`,
		`spec.users[0].passwd: must be a hash`: `spec.users[0].passwd: (removed) be a hash`,
		// Words that only look similar.
		`spec.target.kubeconfigSecretRef: Secret fleet/a does not exist`: `spec.target.kubeconfigSecretRef: Secret fleet/a does not exist`,
		`Secret fleet/a-ca is owned by ExternalSecret a-ca, which stays`: `Secret fleet/a-ca is owned by ExternalSecret a-ca, which stays`,
		`no such Secret: fleet/a`: `no such Secret: fleet/a`,
		`spec.bootstrap.dataSecretName: it is empty, tokenFile: /run/tok`: `spec.bootstrap.dataSecretName: it is empty, tokenFile: /run/tok`,
		`the token expired: renew it`:                                     `the token expired: renew it`,
	} {
		got := redact.Message(message)
		if got != want {
			t.Errorf("Message(%s)\n got  %s\n want %s", message, got, want)
		}
		if again := redact.Message(got); again != got {
			t.Errorf("Message(%s)\n is not stable: %s", got, again)
		}
	}
	if got := redact.Message(strings.Repeat("ö ", 1000)); len(got) > 1003 || !strings.HasSuffix(got, "...") {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestLongMessage checks that a message of MiB takes as long as one of KiB, and that no part of a secret remains at the
// end of the scanned part.
func TestLongMessage(t *testing.T) {
	for _, part := range []string{"a://", "a: b ", `a:"\`} {
		if got := redact.Message(strings.Repeat(part, 4<<20)); len(got) > 1003 {
			t.Errorf("got %d bytes", len(got))
		}
	}
	key := strings.Repeat("A", 8<<10-len("key  ghp_c4n4ry"))
	if got := redact.Message("key " + key + " ghp_c4n4ryc4n4ry" + key); strings.Contains(got, "c4n4ry") || !strings.HasPrefix(got, "key (removed)") {
		t.Errorf("Message = %.100s", got)
	}
	if got := redact.Message("key " + key + " c4n4ryc4n4ryc4n4ryc4n4ry" + key); strings.Contains(got, "c4n4ry") {
		t.Errorf("Message = %.100s", got)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]bool{
		"password": true, "DB_PASSWORD": true, "X-Api-Key": true, "X-Auth-Token": true, "AWS_SECRET_ACCESS_KEY": true, "clientSecret": true,
		"Authorization": true, "Cookie": true, "client-key-data": true, "sig": true,
		"": false, "TOKEN_FILE": false, "secretName": false, "kubeconfigSecretRef": false, "AWS_ACCESS_KEY_ID": false, "tokens": false, "key": false,
		"Content-Type": false, "PASSWORD_LENGTH": false,
	} {
		if redact.IsSecretName(name) != want {
			t.Errorf("Name(%q) = %t", name, !want)
		}
	}
}

func TestTailHidesPasswords(t *testing.T) {
	said := redact.Tail("starting\nDB_PASSWORD=hunter2 api-token: 'hunter2'\nfailed")
	if strings.Contains(said, "hunter2") || !strings.Contains(said, "DB_PASSWORD=(removed)") || !strings.HasSuffix(said, "failed") {
		t.Errorf("Tail = %q", said)
	}
}

// TestManyNames checks that many names of secrets do not take quadratic time, if each may have the rest of the text as
// its value. A pod that writes 64 KiB of them would take half a minute of processor time, and 1 MiB more than an hour.
func TestManyNames(t *testing.T) {
	for _, part := range []string{"http://", "http:\"//", "token=(removed)", "a='", "token='", `token="\`, "a.b:", "token=Invalid ", "a://u:p@s/", "a://u:1/", "a://u@b.c/@"} {
		if text := redact.Text(strings.Repeat(part, 256<<10/len(part))); !strings.HasPrefix(text, part[:1]) {
			t.Errorf("Text of repeated %s = %.40s", part, text)
		}
	}
}
