// Package must ends a test whose result is not the expected one. It is for tests only.
package must

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// T is a test, a benchmark, or a fuzz test.
type T interface {
	Helper() // takes a microsecond: only before Fatal
	Fatal(args ...any)
}

// Do ends the test if one of the errors is not nil.
func Do(t T, errs ...error) {
	for _, err := range errs {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
}

// Get returns the result of a call as a function, which ends the test if err is not nil:
//
//	table := must.Get(store.Table("t"))(t)
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Get2 is Get for a call with two results.
func Get2[V, W any](v V, w W, err error) func(T) (V, W) {
	return func(t T) (V, W) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v, w
	}
}

// Err returns the error of a call with one result.
func Err[V any](_ V, err error) error { return err }

// Fail ends the test if err is not want, as [errors.Is] compares them. The failure starts with
// about, which names the case.
func Fail(t T, err, want error, about ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Fatal(title(about) + fmt.Sprintf("error %v, want %v", err, want))
	}
}

// Equal ends the test if got and want are not equal, as [reflect.DeepEqual] compares them. The
// failure starts with about, which names the case.
func Equal[V any](t T, got, want V, about ...any) {
	if reflect.DeepEqual(got, want) {
		return
	}
	t.Helper()
	format := "got %+v, want %+v"
	switch text := any(got).(type) {
	case string:
		format = "got %.300q, want %.300q"
		if strings.Contains(text, "\n") {
			format = "got\n%s\nwant\n%s"
		}
	case []byte, []string:
		format = "got %.300q, want %.300q"
	}
	t.Fatal(title(about) + fmt.Sprintf(format, got, want))
}

// title is about in one line.
func title(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintln(about...)) + ": "
}
