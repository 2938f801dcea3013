package embedded

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// logPrefix is the first part of the subjects of commits.
const logPrefix = "scute.log"

// nextMessages is the subject of requests for a consumer's next messages.
const nextMessages = "$JS.API.CONSUMER.MSG.NEXT.*.*"

// requests returns the subjects on which a role may publish. The stream is a wildcard because the server has no other stream.
func (r Role) requests() (subjects []string) {
	subjects = []string{
		"$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.*", "$JS.API.DIRECT.GET.*.>",
		createConsumer, nextMessages,
	}
	if r == Operator {
		subjects = append(subjects, logPrefix+".*.*")
	}
	return subjects
}

// permissions returns the permissions of a role in its account.
func (r Role) permissions() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: r.requests()},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}
}

// newAccounts creates a separate account for each role, which imports only the role's requests. The server publishes an answer with the server's
// rights on the subject that a request names. In a separate account this answer only reaches the role. In the account of the log the subject could
// be one of the log, or a request to delete it.
func newAccounts(srv *server.Server) (map[Role]*server.Account, error) {
	log, accounts := srv.GlobalAccount(), make(map[Role]*server.Account)
	for _, role := range Roles() {
		account, err := srv.RegisterAccount("SCUTE_" + string(role))
		if err != nil {
			return nil, err
		}
		accounts[role] = account
		for _, subject := range role.requests() {
			// The server deletes the reply mapping when it has sent the answer, or after minutes if there may be several answers.
			to, answers := subject, server.Singleton
			switch commits, ok := strings.CutPrefix(subject, logPrefix); {
			case ok:
				to = appendPrefix + commits
			case subject == createConsumer:
				to = gateSubject
			case subject == nextMessages:
				answers = server.Streamed
			}
			if err := log.AddServiceExportWithResponse(to, answers, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", to, err)
			}
			if err := account.AddServiceImport(log, subject, to); err != nil {
				return nil, fmt.Errorf("%s: %w", subject, err)
			}
		}
	}
	return accounts, nil
}
