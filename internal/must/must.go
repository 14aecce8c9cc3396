// Package must ends a test at the first error of a call that has to succeed. It is for tests only.
package must

// T is a test, a benchmark, or a fuzz test.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if one of the errors is not nil.
func Do(t T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Get returns the result of a call as a function, which ends the test if err is not nil:
//
//	table := must.Get(store.Table("t"))(t)
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Get2 is Get for a call with two results.
func Get2[V, W any](v V, w W, err error) func(T) (V, W) {
	return func(t T) (V, W) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}
