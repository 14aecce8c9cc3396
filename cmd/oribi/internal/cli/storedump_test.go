package cli

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
)

func TestStoreDumpNextToAWriter(t *testing.T) {
	dir := t.TempDir()
	store := must.Get(oribi.Open(dir, nil))(t)
	defer store.Close()
	var out, errs bytes.Buffer
	a := &console.Console{Stdout: &console.Stdout{Out: &out}, Stderr: &errs}
	code := run(t.Context(), a, []string{"store", "dump", dir})
	if code != exit.Done || out.Len() == 0 || errs.Len() > 0 {
		t.Errorf("exit code %d, stdout of %d bytes, stderr %q", code, out.Len(), errs.String())
	}
}
