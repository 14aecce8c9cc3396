package tablecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
)

// Put is the verb "oribi table put".
func Put(a *console.Console) *cobra.Command {
	var limit int
	c := verb.New(a, "put DIR NAME JSON", "Insert or update one row", func(cmd *cobra.Command, args []string) error {
		if err := flags.CheckCellLimit(limit); err != nil {
			return err
		}
		return changeRow(a, cmd, args, oribi.OpUpsert, limit)
	})
	flags.CellLimit(c, &limit)
	return c
}

// changeRow commits one operation and prints its timestamp.
func changeRow(a *console.Console, cmd *cobra.Command, args []string, kind oribi.Op, cellLimit int) error {
	return access.WithOptions(args[0], access.Writing(cmd), oribi.Options{CellLimit: cellLimit},
		func(store *oribi.Store) error {
			t, err := access.OpenTable(store, args[1])
			if err != nil {
				return err
			}
			parse, auto := kind, t.Schema().AutoIncrement()
			if auto >= 0 && kind == oribi.OpUpsert {
				parse = oribi.OpInsert // which need not have the key that the row will get
			}
			op, err := readRow(t, parse, args[2])
			if err != nil {
				return exit.Usage(err)
			}
			if parse == kind || op.Set[auto] {
				op.Kind = kind
			}
			b := store.NewBatch()
			op.Add(b)
			ts, err := b.Commit(cmd.Context())
			switch {
			case errors.Is(err, oribi.ErrNotFound):
				return exit.With(exit.Missing, apply.RowCause(err))
			case errors.Is(err, oribi.ErrRow):
				return flags.CellHint(exit.Usage(apply.RowCause(err)))
			case err != nil:
				return err
			}
			return a.Printf("%d\n", ts)
		})
}

// readRow parses a row or, for a delete, its key.
func readRow(t *oribi.Table, kind oribi.Op, text string) (apply.Operation, error) {
	s := t.Schema()
	target := &apply.Target{Table: t, Schema: s}
	if kind != oribi.OpDelete {
		var d apply.Decoder
		return d.Row(kind, target, []byte(text))
	}
	op := apply.Operation{Kind: kind, Target: target, Cells: make([][]byte, len(s.Columns)),
		Set: make([]bool, len(s.Columns))}
	key, err := cell.Key(s, text, false)
	if err != nil {
		return op, fmt.Errorf("key: %w", err)
	}
	for i := range key {
		op.Cells[i], op.Set[i] = key[i], true
	}
	return op, nil
}
