// Command settings is a store of settings that can be audited. It shows who set each value, lists
// the changes between two releases, and brings back the settings of a release.
//
// The program writes no audit log. The table keeps every version of every row, each state has a
// timestamp, and a restore is one call.
//
//	go run ./examples/settings settings.oribi
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Setting is a row of the table "settings".
type Setting struct {
	Name  string `oribi:"name,key"`
	Value string
	By    string // who set it
}

// Release is a row of the table "releases": a name for a state of the settings.
type Release struct {
	Name string `oribi:"name,key"`
	At   mvcc.Timestamp
}

// Settings is safe for concurrent use.
type Settings struct {
	store    *oribi.Store
	settings *oribi.TableOf[Setting]
	releases *oribi.TableOf[Release]
}

// OpenSettings opens the store in dir, or creates it with a table that keeps all its history.
func OpenSettings(dir string) (s *Settings, err error) {
	store, err := oribi.Open(dir, &oribi.Options{History: oribi.HistoryForever})
	if err != nil {
		return nil, err
	}
	s = &Settings{store: store}
	if s.settings, err = oribi.OpenTable[Setting](store, "settings"); err == nil {
		s.releases, err = oribi.OpenTable[Release](store, "releases")
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	return s, nil
}

// Set sets several settings at once: readers see all of them or none.
func (s *Settings) Set(ctx context.Context, by string, values map[string]string) (mvcc.Timestamp, error) {
	var rows []Setting
	for name, value := range values {
		rows = append(rows, Setting{name, value, by})
	}
	return s.settings.Put(ctx, rows...)
}

// Replace sets a setting unless it was set by another caller since the caller read the old value.
func (s *Settings) Replace(ctx context.Context, by, name, old, value string) error {
	row := Setting{name, value, by}
	b := s.store.NewBatch()
	s.settings.InBatch(b).If(row, oribi.Eq("value", old))
	s.settings.InBatch(b).Update(row)
	_, err := b.Commit(ctx)
	return err
}

// Tag names the state at a timestamp.
func (s *Settings) Tag(ctx context.Context, release string, at mvcc.Timestamp) error {
	_, err := s.releases.Put(ctx, Release{release, at})
	return err
}

// Rollback brings back the settings of a release, and returns how many changed. Later settings stay
// in the history.
func (s *Settings) Rollback(ctx context.Context, release string) (int64, error) {
	r, err := s.releases.Get(ctx, release)
	if err != nil {
		return 0, err
	}
	res, err := s.settings.Table.RestoreTo(ctx, r.At)
	return res.Rows, err
}

// Audit prints every version of a setting, newest first.
func (s *Settings) Audit(ctx context.Context, name string) error {
	fmt.Printf("history of %s\n", name)
	for v, err := range s.settings.History(ctx, name) {
		if err != nil {
			return err
		}
		if v.Row == nil {
			fmt.Printf("  %s\n", v.Kind)
		} else {
			fmt.Printf("  %s %s by %s\n", v.Kind, v.Row.Value, v.Row.By)
		}
	}
	return nil
}

// Changes prints what differs between two releases.
func (s *Settings) Changes(ctx context.Context, from, to string) error {
	ends, err := s.releases.GetMany(ctx, []any{from, to})
	if err != nil {
		return err
	}
	if ends[0] == nil || ends[1] == nil {
		return fmt.Errorf("no release %s or %s", from, to)
	}
	fmt.Printf("from %s to %s\n", from, to)
	for d, err := range s.settings.Diff(ctx, ends[0].At, ends[1].At) {
		switch {
		case err != nil:
			return err
		case d.Before == nil:
			fmt.Printf("  + %s = %s\n", d.After.Name, d.After.Value)
		case d.After == nil:
			fmt.Printf("  - %s = %s\n", d.Before.Name, d.Before.Value)
		default:
			fmt.Printf("    %s = %s, was %s\n", d.After.Name, d.After.Value, d.Before.Value)
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: settings DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run makes two releases and rolls the second one back.
func run(ctx context.Context, dir string) error {
	s, err := OpenSettings(dir)
	if err != nil {
		return err
	}
	defer s.store.Close()

	at, err := s.Set(ctx, "ada", map[string]string{"greeting": "hello", "limit": "100", "theme": "light"})
	if err == nil {
		err = s.Tag(ctx, "v1", at)
	}
	if err != nil {
		return err
	}
	// Two people change the limit. The second has not seen the change of the first.
	if err := s.Replace(ctx, "bob", "limit", "100", "1000"); err != nil {
		return err
	}
	if err := s.Replace(ctx, "cyd", "limit", "100", "50"); !errors.Is(err, oribi.ErrConflict) {
		return fmt.Errorf("a change was lost: %v", err)
	}
	fmt.Println("cyd's limit of 50 is refused: the limit is no longer 100")
	if at, err = s.Set(ctx, "cyd", map[string]string{"theme": "dark", "beta": "on"}); err == nil {
		err = s.Tag(ctx, "v2", at)
	}
	if err == nil {
		err = s.Changes(ctx, "v1", "v2")
	}
	if err != nil {
		return err
	}

	n, err := s.Rollback(ctx, "v1")
	if err != nil {
		return err
	}
	fmt.Printf("back to v1: %d settings\n", n)
	for row, err := range s.settings.Scan(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %s = %s\n", row.Name, row.Value)
	}
	return s.Audit(ctx, "limit")
}
