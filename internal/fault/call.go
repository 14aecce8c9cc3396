package fault

import "strings"

// prefix begins the text of every error that a public call of package oribi returns.
const prefix = "oribi: "

// Call returns err as the error of a public call of package oribi at a place, which may be empty;
// nil for nil. err may be the error of another public call: the prefix is not repeated.
func Call(place string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{place, err}
}

type callError struct {
	place string // what was being done, or with what
	cause error
}

func (e *callError) Error() string {
	text := strings.TrimPrefix(e.cause.Error(), prefix)
	if e.place != "" {
		text = e.place + ": " + text
	}
	return prefix + text
}

func (e *callError) Unwrap() error { return e.cause }
