// What every page of the lab has: the menu of narrow windows.

const menu = document.querySelector('nav .menu'), places = document.getElementById('places');
menu?.addEventListener('click', () => menu.setAttribute('aria-expanded', places.classList.toggle('open')));
