// Package postgres tests what the library leaves to PostgreSQL, on a real server
// that the tests start. It has a module of its own, so that nobody who imports
// the lock inherits a driver.
package postgres
