// Command sqlite is examples/shop with SQLite.
package main

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"slices"
	"sync"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Order is an item that a user has bought.
type Order struct {
	ID, User  int64
	Day, Item string
	Price     int64 // in cents
}

const tables = `
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, mail TEXT NOT NULL UNIQUE);
CREATE TABLE items (name TEXT PRIMARY KEY, price INTEGER NOT NULL, stock INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE orders (id INTEGER PRIMARY KEY, user INTEGER NOT NULL, day TEXT NOT NULL, item TEXT NOT NULL,
	price INTEGER NOT NULL);
CREATE INDEX by_user ON orders (user, day, id);`

// Shop is safe for concurrent use.
type Shop struct {
	writes                        *sql.DB
	find, sell, order, next, last *sql.Stmt
}

// Buy sells an item on a day to the user with an e-mail address. It returns false if none is left.
func (s *Shop) Buy(mail, name string, day time.Time) (bool, error) {
	var user, price int64
	if err := s.find.QueryRow(mail, name).Scan(&user, &price); err != nil {
		return false, err
	}
	tx, err := s.writes.Begin()
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	sold, err := tx.Stmt(s.sell).Exec(name)
	if err != nil {
		return false, err
	}
	if n, err := sold.RowsAffected(); n == 0 || err != nil {
		return false, err
	}
	if _, err = tx.Stmt(s.order).Exec(user, day.Format(time.DateOnly), name, price); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// page reads orders with one of two statements.
func page(st *sql.Stmt, args ...any) (orders []Order, err error) {
	rows, err := st.Query(args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Order
		if err := rows.Scan(&o.ID, &o.User, &o.Day, &o.Item, &o.Price); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

// Next returns the first n orders of a user by day, after one of them.
func (s *Shop) Next(user int64, after Order, n int) ([]Order, error) {
	return page(s.next, user, after.Day, after.ID, n)
}

// Last returns the last n orders of a user before one of them, the newest first.
func (s *Shop) Last(user int64, before Order, n int) ([]Order, error) {
	return page(s.last, user, before.Day, before.ID, n)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	lamps := flag.Int("n", 1, "kinds of lamps: there are 100 of each, and each customer wants 10")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: sqlite [-n N] FILE")
	}
	source := "file:" + flag.Arg(0) + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	reads, writes := must(sql.Open("sqlite", source)), must(sql.Open("sqlite", source))
	defer reads.Close()
	defer writes.Close()
	reads.SetMaxOpenConns(runtime.NumCPU())
	reads.SetMaxIdleConns(runtime.NumCPU())
	writes.SetMaxOpenConns(1) // SQLite has one writer at a time
	must(writes.Exec(tables))
	s := &Shop{writes,
		must(reads.Prepare("SELECT users.id, price FROM users, items WHERE mail = ? AND items.name = ?")),
		must(writes.Prepare("UPDATE items SET stock = stock - 1 WHERE name = ? AND stock > 0")),
		must(writes.Prepare("INSERT INTO orders (user, day, item, price) VALUES (?, ?, ?, ?)")),
		must(reads.Prepare("SELECT * FROM orders WHERE user = ? AND (day, id) > (?, ?) ORDER BY day, id LIMIT ?")),
		must(reads.Prepare("SELECT * FROM orders WHERE user = ? AND (day, id) < (?, ?) ORDER BY day DESC, id DESC LIMIT ?"))}
	const addUser = "INSERT INTO users VALUES (?, ?, ?)"
	must(writes.Exec(addUser, 1, "Ada", "ada@example.org"))
	must(writes.Exec(addUser, 2, "Bob", "bob@example.org"))
	for i := range *lamps {
		must(writes.Exec("INSERT INTO items VALUES (?, 1990, 100)", fmt.Sprint("lamp ", i)))
	}
	_, err := writes.Exec(addUser, 3, "Cyd", "bob@example.org")
	var refused *sqlite.Error
	fmt.Println("an address twice:", errors.As(err, &refused) && refused.Code() == lib.SQLITE_CONSTRAINT_UNIQUE)

	var customers sync.WaitGroup
	end := Order{Day: "9999"} // after all days
	for i := range 16 {
		customers.Go(func() {
			user, mail := int64(1+i%2), []string{"ada@example.org", "bob@example.org"}[i%2]
			for n := range 10 * *lamps {
				name, day := fmt.Sprint("lamp ", (i+n)%*lamps), time.Date(2026, 3, 1+n%31, 0, 0, 0, 0, time.UTC)
				must(s.Buy(mail, name, day))
				must(s.Last(user, end, 5))
			}
		})
	}
	customers.Wait()
	var sold, left int
	must(0, reads.QueryRow("SELECT (SELECT count(*) FROM orders), stock FROM items WHERE name = 'lamp 0'").Scan(&sold, &left))
	fmt.Printf("wanted %d, sold %d, left %d\n", 160**lamps, sold, left)
	first := must(s.Next(1, Order{}, 5))
	second := must(s.Next(1, first[4], 5))
	back := must(s.Last(1, second[0], 5))
	slices.Reverse(back)
	fmt.Println("back on the first page:", slices.Equal(first, back), "of", len(back))
}
