// Numbers, times and durations as a reader of the language writes them.

/** A reader's time zone as the host keeps it, or the browser's own. */
export function hostTimeZone() {
  const stored = globalThis.localStorage?.getItem("timezone");
  if (!stored) return undefined;
  const zone = stored.startsWith('"') ? stored.slice(1, -1) : stored;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone;
  } catch {
    return undefined;
  }
}

const NOTHING = "–";
const known = (value) => typeof value === "number" && Number.isFinite(value);
/** A true minus sign, as wide as a plus. */
const minus = (words) => words.replace("-", "−");
const when = (formatter) => (value) => (known(value) ? formatter(value) : NOTHING);

/** Formatters for one language and one time zone; each gives a dash for what is not known. */
export function formats(language, timeZone) {
  const plain = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
  const short = new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 });
  const slow = new Intl.NumberFormat(language, { maximumSignificantDigits: 2 });
  const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });
  const whole = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 });
  const points = new Intl.NumberFormat(language, { maximumFractionDigits: 1, signDisplay: "exceptZero" });
  const signed = new Intl.NumberFormat(language, {
    notation: "compact",
    maximumSignificantDigits: 3,
    signDisplay: "exceptZero",
  });
  // Days before months, 24 hours: what engineers in most places read without thinking.
  const dates = language.startsWith("zh") ? language : "en-GB";
  const day = new Intl.DateTimeFormat(dates, { timeZone, dateStyle: "medium" });
  const clock = new Intl.DateTimeFormat(dates, { timeZone, hour: "2-digit", minute: "2-digit", hour12: false });
  const both = new Intl.DateTimeFormat(dates, {
    timeZone,
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  });
  const unit = (name) =>
    new Intl.NumberFormat(language, { style: "unit", unit: name, unitDisplay: "short", maximumFractionDigits: 1 });
  const units = { day: unit("day"), hour: unit("hour"), minute: unit("minute"), second: unit("second") };

  const duration = (seconds) => {
    const total = Math.max(0, seconds);
    if (total < 10) return units.second.format(Math.round(total * 10) / 10);
    if (total < 60) return units.second.format(Math.round(total));
    const minutes = Math.round(total / 60);
    if (minutes < 60) return units.minute.format(minutes);
    const hours = Math.floor(minutes / 60);
    if (hours < 24) {
      return minutes % 60 === 0
        ? units.hour.format(hours)
        : `${units.hour.format(hours)} ${units.minute.format(minutes % 60)}`;
    }
    const days = Math.floor(hours / 24);
    return hours % 24 === 0 || days > 1 ? units.day.format(days) : `${units.day.format(days)} ${units.hour.format(hours % 24)}`;
  };
  const time = (epoch) => {
    const date = new Date(epoch * 1000);
    return day.format(date) === day.format(new Date()) ? clock.format(date) : both.format(date);
  };

  return {
    number: when((value) => plain.format(value)),
    compact: when((value) => (Math.abs(value) < 10000 ? plain.format(value) : short.format(value))),
    /** A number a second: below ten the first two digits tell, and slow never reads as 0. */
    rate: when((value) => (value < 10 ? slow : value < 10000 ? plain : short).format(value)),
    exact: when((value) => exact.format(value)),
    /** A share 0..1; what is there but small never reads as 0 %. */
    share: when((value) =>
      value > 0 && value < 0.001 ? `< ${percent.format(0.001)}` : percent.format(value),
    ),
    progress: when((value) => whole.format(value < 1 ? Math.min(value, 0.99) : 1)),
    points: when((value) => minus(points.format(value * 100))),
    signed: when((value) => minus(signed.format(value))),
    duration: when(duration),
    time: when(time),
    date: when((epoch) => day.format(new Date(epoch * 1000))),
  };
}
