// What every page of the lab has: the menu of narrow windows, and how the program is asked.

const menu = document.querySelector('nav .menu'), places = document.getElementById('places');
menu?.addEventListener('click', () => menu.setAttribute('aria-expanded', places.classList.toggle('open')));

// refusal is what went wrong and what to do.
export const refusal = answer => [answer.error, answer.hint].filter(Boolean).join(': ');

// answered is the JSON of an answer; a refusal is thrown.
export async function answered(r) {
  const answer = await r.json();
  if (!r.ok) throw new Error(refusal(answer));
  return answer;
}

// post asks with JSON.
export const post = async (path, body = {}) => answered(await fetch(path, {
  method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body),
}));

// said is an error for people: fetch throws a TypeError where nobody answers.
export const said = e => e instanceof TypeError ? 'the lab does not answer: start warpline lab again' : e.message;
