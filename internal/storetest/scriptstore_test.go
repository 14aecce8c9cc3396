package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// scriptSteps are the commands that are no operations.
var scriptSteps map[string]func(s *scripted, a *arguments) error

func init() {
	scriptSteps = map[string]func(s *scripted, a *arguments) error{
		"get": (*scripted).get, "has": (*scripted).has, "many": (*scripted).many, "scan": (*scripted).scan,
		"count": (*scripted).count, "aggregate": (*scripted).aggregate, "history": (*scripted).history,
		"diff": (*scripted).diff, "subscribe": (*scripted).subscribe, "ingest": (*scripted).ingest,
		"new": (*scripted).renew, "create": (*scripted).create, "alter": (*scripted).alter,
		"properties": (*scripted).properties, "layout": (*scripted).layout, "bulk": (*scripted).bulk,
		"snapshot": (*scripted).snapshot, "verify": (*scripted).verify, "kill": (*scripted).kill, "cut": (*scripted).cut,
		"info": (*scripted).info,

		"use": func(s *scripted, a *arguments) error {
			table, err := s.store.Table(a.word(0))
			if err == nil {
				s.table = table
			}
			return err
		},
		"drop":   func(s *scripted, a *arguments) error { return s.store.DropTable(a.word(0)) },
		"rename": func(s *scripted, a *arguments) error { return s.table.Rename(s.ctx(a), a.word(0)) },
		"tables": func(s *scripted, a *arguments) error {
			for _, t := range s.store.Tables() {
				s.print("%s", t.Name())
			}
			return nil
		},
		"close": func(s *scripted, a *arguments) error { return s.store.Close() },
		"reopen": func(s *scripted, a *arguments) error {
			must.Do(s.t, s.store.Close())
			return s.open(a)
		},
		"follow": func(s *scripted, a *arguments) error {
			follower, err := oribi.Open("/store", &oribi.Options{FS: s.wall.mem, Follow: true, Clock: s.clock()})
			if err == nil {
				s.keep(a.word(0), follower)
			}
			return err
		},
		"refresh": func(s *scripted, a *arguments) error { return s.store.Refresh(s.ctx(a)) },
		"clock": func(s *scripted, a *arguments) error {
			s.wall.move(must.Get(time.ParseDuration(a.word(0)))(s.t))
			return nil
		},
		"advance": func(s *scripted, a *arguments) error { return s.store.AdvanceClock(s.timestamp(a.word(0))) },

		"batch": func(s *scripted, a *arguments) error { s.named[a.word(0)] = s.store.NewBatch(); return nil },
		"reset": func(s *scripted, a *arguments) error { s.batch.Reset(); return nil },
		"len":   func(s *scripted, a *arguments) error { s.print("%d operations", s.batch.Len()); return nil },
		"begin": func(s *scripted, a *arguments) error {
			tx, err := s.store.Begin(s.ctx(a))
			s.named[a.word(0)] = tx
			return err
		},
		"rollback": func(s *scripted, a *arguments) error { s.tx.Rollback(); return nil },
		"commit":   (*scripted).commitNamed,
		"release":  func(s *scripted, a *arguments) error { return s.named[a.word(0)].(*oribi.Snapshot).Close() },

		"flush":       func(s *scripted, a *arguments) error { return s.table.Flush(s.ctx(a)) },
		"flushdeltas": result((*oribi.Table).FlushDeltas),
		"compact":     func(s *scripted, a *arguments) error { return s.table.Compact(s.ctx(a)) },
		"minor":       result((*oribi.Table).CompactMinor),
		"major": func(s *scripted, a *arguments) error {
			_, err := s.table.CompactMajor(s.ctx(&arguments{}), a.words...)
			return err
		},
		"undogc":     result((*oribi.Table).CollectUndos),
		"recompress": result((*oribi.Table).Recompress),
	}
}

// result makes a command of a compaction that takes no arguments.
func result(do func(*oribi.Table, context.Context) (compaction.Result, error)) func(*scripted, *arguments) error {
	return func(s *scripted, a *arguments) error {
		_, err := do(s.table, s.ctx(a))
		return err
	}
}

// renew begins with an empty disk. Tables keep all history, and timestamps are 1, 2, 3. With history=1h
// they come from a clock that the command clock moves, and that is how long tables keep history.
func (s *scripted) renew(a *arguments) error {
	if s.store != nil {
		s.store.Close()
	}
	s.wall, s.logical, s.store, s.table = newFakeWall(), true, nil, nil
	s.options = oribi.Options{Manual: true, History: oribi.HistoryForever, RowSetBytes: 1 << 13}
	s.times, s.named = map[string]mvcc.Timestamp{}, map[string]any{}
	if text, ok := a.value("history"); ok {
		if s.logical = false; text != "forever" {
			s.options.History = must.Get(time.ParseDuration(text))(s.t)
		}
	}
	return s.open(&arguments{})
}

func (s *scripted) clock() mvcc.Clock {
	if s.logical {
		return mvcc.NewLogicalClock(mvcc.Min)
	}
	return mvcc.NewHybridClock(s.wall.time)
}

// open opens the store and its current table, with the word readonly read-only.
func (s *scripted) open(a *arguments) error {
	o := s.options
	o.FS, o.Clock, o.ReadOnly = s.wall.mem, s.clock(), a.has("readonly")
	store, err := oribi.Open("/store", &o)
	if err != nil {
		return err
	}
	s.t.Cleanup(func() { store.Close() })
	if s.store = store; s.table != nil {
		s.table, err = store.Table(s.table.Name())
	}
	return err
}

func (s *scripted) keep(name string, store *oribi.Store) {
	s.named[name] = store
	s.t.Cleanup(func() { store.Close() })
}

// kill ends the process: all that was written remains. cut cuts the power: all that was synced
// remains.
func (s *scripted) kill(a *arguments) error {
	s.wall.mem = s.wall.mem.Clone()
	s.store.Close()
	return s.open(a)
}

func (s *scripted) cut(a *arguments) error {
	s.wall.mem = s.wall.mem.Crash()
	s.store.Close()
	return s.open(a)
}

// create creates a table with columns, and the options history=1h, expires=column,age, rowfile.
func (s *scripted) create(a *arguments) error {
	words := a.words[1:]
	var options []oribi.TableOption
	for _, p := range a.pairs {
		switch p[0] {
		case "history":
			options = append(options, oribi.History(must.Get(time.ParseDuration(p[1]))(s.t)))
		case "expires":
			column, age, _ := strings.Cut(p[1], ",")
			options = append(options, oribi.Expires(column, must.Get(time.ParseDuration(age))(s.t)))
		default:
			words = append(words, p[0]+"="+p[1])
		}
	}
	if i := slices.Index(words, "rowfile"); i >= 0 {
		words = slices.Delete(words, i, i+1)
		options = append(options, oribi.RowFile(schema.FullRowFile))
	}
	sc, err := parseSchema(words)
	if err != nil {
		return err
	}
	table, err := s.store.CreateTable(a.words[0], sc, options...)
	if err == nil {
		s.table = table
	}
	return err
}

// alter makes the alterations in its words, with commas after all but the last: add c:type, drop c,
// rename c to, default c 5, type c int16, immutable c, mutable c, history 1h, expires c 1h,
// expires none, comment text, encoding c rle, compression c lz4, block c 4096.
func (s *scripted) alter(a *arguments) error {
	var alterations []oribi.Alteration
	var part []string
	for i, w := range a.raw {
		w, more := strings.CutSuffix(w, ",")
		if part = append(part, w); !more && i < len(a.raw)-1 {
			continue
		}
		alteration, err := s.alteration(append(part, "", ""))
		if err != nil {
			return err
		}
		alterations, part = append(alterations, alteration), nil
	}
	return s.table.Alter(s.ctx(a), alterations...)
}

func (s *scripted) alteration(w []string) (oribi.Alteration, error) {
	var c schema.Column
	columns := s.table.Schema()
	if i := columns.Index(w[1]); i >= 0 {
		c = columns.Columns[i]
	}
	switch w[0] {
	case "add":
		c, _, err := parseColumn(w[1])
		return oribi.AddColumn(c), err
	case "drop":
		return oribi.DropColumn(w[1]), nil
	case "rename":
		return oribi.RenameColumn(w[1], w[2]), nil
	case "default":
		if w[2] == "none" {
			return oribi.SetDefault(w[1], nil), nil
		}
		if c.Name == "" { // a column that an alteration before this one adds
			return oribi.SetDefault(w[1], w[2]), nil
		}
		return oribi.SetDefault(w[1], value(&c, w[2])), nil
	case "type":
		to := schema.Column{}
		err := to.ParseTypeName(w[2])
		return oribi.SetType(w[1], to), err
	case "immutable", "mutable":
		return oribi.SetImmutable(w[1], w[0] == "immutable"), nil
	case "history":
		if w[1] == "forever" {
			return oribi.SetHistory(oribi.HistoryForever), nil
		}
		return oribi.SetHistory(must.Get(time.ParseDuration(w[1]))(s.t)), nil
	case "expires":
		if w[1] == "none" {
			return oribi.ClearExpires(), nil
		}
		return oribi.SetExpires(w[1], must.Get(time.ParseDuration(w[2]))(s.t)), nil
	case "comment":
		return oribi.SetComment(w[1]), nil
	case "columncomment":
		return oribi.SetColumnComment(w[1], w[2]), nil
	case "encoding":
		encoding, ok := schema.EncodingByName(w[2])
		if !ok {
			s.t.Fatalf("encoding %s", w[2])
		}
		return oribi.SetEncoding(w[1], encoding), nil
	case "compression":
		return oribi.SetCompression(w[1], schema.Compression(must.Get(strconv.Atoi(w[2]))(s.t))), nil
	case "block":
		return oribi.SetBlockSize(w[1], int32(must.Get(strconv.Atoi(w[2]))(s.t))), nil
	}
	s.t.Fatalf("no alteration %s", w[0])
	return nil, nil
}

// properties prints the schema and the properties of the table.
func (s *scripted) properties(*arguments) error {
	p := s.table.Properties()
	var columns []string
	for _, c := range s.table.Schema().Columns {
		columns = append(columns, fmt.Sprintf("%d %s %s", c.ID, c.Name, c.TypeName()))
	}
	s.print("version %d, floor %s: %s", p.SchemaVersion, s.timeText(p.HistoryFloor), strings.Join(columns, ", "))
	if p.Expiry.Since != 0 {
		s.print("expires %q %v since %s", p.Expiry.Column, p.Expiry.Age, s.timeText(p.Expiry.Since))
	}
	return nil
}

// layout prints the rowsets, with their rows and delta files, and the rows in memory.
func (s *scripted) layout(*arguments) error {
	key := celltext.Keys(s.table.Schema())
	var texts []string
	for _, r := range s.table.Layout().RowSets {
		texts = append(texts, fmt.Sprintf("%s..%s: rows %d, live %d, redos %d, undos %d", key(r.MinKey), key(r.MaxKey),
			r.Rows, r.LiveRows, r.Redos, r.Undos))
	}
	s.list(texts, "no rowsets")
	return nil
}

// bulk makes a bulk call: update, delete, range, truncate, or restore. It updates the columns in its
// pairs.
func (s *scripted) bulk(a *arguments) (err error) {
	set := oribi.Row{}
	columns := s.table.Schema()
	read := arguments{words: a.words[1:]}
	for _, p := range a.pairs {
		if slices.Contains([]string{"where", "from", "to", "prefix", "bytes"}, p[0]) {
			read.pairs = append(read.pairs, p)
		} else if p[0] != "at" && p[0] != "confirm" {
			set[p[0]] = s.rows(columns, [][2]string{p})[0][p[0]]
		}
	}
	options := optionsAs[oribi.BulkOption](s, &read)
	if most, ok := a.value("confirm"); ok {
		options = append(options, oribi.Confirm(func(n int64) error {
			if s.print("%d rows?", n); most != fmt.Sprint(n) {
				return errors.New("not confirmed")
			}
			return nil
		}))
	}
	var others []oribi.BulkOption
	for _, o := range options {
		if o, ok := o.(oribi.BulkOption); ok {
			others = append(others, o)
		}
	}
	var res oribi.BulkResult
	switch ctx := s.ctx(a); a.words[0] {
	case "update":
		res, err = s.table.UpdateWhere(ctx, set, options...)
	case "delete":
		res, err = s.table.DeleteWhere(ctx, options...)
	case "truncate":
		res, err = s.table.Truncate(ctx, others...)
	case "restore":
		to, _ := a.value("at")
		res, err = s.table.RestoreTo(ctx, s.timestamp(to), others...)
	}
	if err == nil {
		s.print("%d rows", res.Rows)
		if res.Timestamp != 0 {
			s.returned(res.Timestamp)
		}
	}
	return err
}

// commitNamed commits the write batch or the transaction that its first word names.
func (s *scripted) commitNamed(a *arguments) error {
	if len(a.words) == 0 {
		return s.commit(s.store.NewBatch(), nil)
	}
	switch x := s.named[a.words[0]].(type) {
	case *oribi.Batch:
		var options [][]string
		for _, w := range a.words[1:] {
			options = append(options, []string{w})
		}
		return s.commit(x, options)
	case *oribi.Tx:
		ts, err := x.Commit()
		if err == nil {
			s.returned(ts)
		}
		return err
	}
	s.t.Fatalf("no write batch has the name %s", a.words[0])
	return nil
}

// snapshot takes a snapshot, and names it and its timestamp.
func (s *scripted) snapshot(a *arguments) (err error) {
	var sn *oribi.Snapshot
	if at, ok := a.value("at"); ok {
		sn, err = s.store.SnapshotAt(s.ctx(a), s.timestamp(at))
	} else {
		sn, err = s.store.Snapshot(s.ctx(a))
	}
	if err == nil {
		sn.SetName(a.words[0])
		s.named[a.words[0]], s.last = sn, sn.Timestamp()
	}
	return err
}

// info prints the open snapshots, the number of rowsets, and whether blocks have bytes.
func (s *scripted) info(*arguments) error {
	info, err := s.store.Info()
	if err != nil {
		return err
	}
	for _, sn := range info.Snapshots {
		s.print("snapshot %q at %s", sn.Name, s.timeText(sn.Timestamp))
	}
	s.print("%d tables, %d rowsets, live bytes: %t, dead bytes: %t", info.Tables, info.RowSets, info.Bytes.Live > 0,
		info.Bytes.Dead > 0)
	return nil
}

// verify verifies the store, with all that its files contain.
func (s *scripted) verify(a *arguments) error {
	return s.store.VerifyDeep(s.ctx(a), func(f oribi.Finding) { s.print("%+v", f) })
}
